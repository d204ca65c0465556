"""What suits a time: how fast this machine trains, what settings reach, and which are the best."""

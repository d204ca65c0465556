"""What opens above the workbench: forms and questions."""

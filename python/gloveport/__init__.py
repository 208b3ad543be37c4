"""What gloveport gives to the Python kernels of its sandboxes."""

"""Running compiled modules and measuring their memory."""

"""What a program's header offers: inputs and outputs by name and by number, and classes."""

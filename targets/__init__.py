"""One TOML file per board; ``tvm_serenity.boards`` reads them."""

class SerenityRewrite:
    pass

class SerenityRewrite: pass

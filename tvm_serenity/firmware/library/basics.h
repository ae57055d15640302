/* Small functions that generated kernels share. */
#if defined(__clang__)
#define NOT_INLINED __attribute__((noinline)) static
#else
#define NOT_INLINED __attribute__((noinline, noclone)) static
#endif
static inline int32_t min_i32(int32_t a, int32_t b) { return a < b ? a : b; }
static inline int32_t max_i32(int32_t a, int32_t b) { return a > b ? a : b; }
static inline uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }
static inline uint32_t max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }
static inline int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }
static inline float min_f32(float a, float b) { return a < b ? a : b; }
static inline float max_f32(float a, float b) { return a > b ? a : b; }
static inline double min_f64(double a, double b) { return a < b ? a : b; }
static inline double max_f64(double a, double b) { return a > b ? a : b; }
static inline int32_t clz_int32(int32_t a) { return (int32_t)__builtin_clz((uint32_t)a); }
static inline int32_t clz_int64(int64_t a) { return (int32_t)__builtin_clzll((uint64_t)a); }

#define TURNED 32u

/* Retained rows move to the first store, those of each store to the next store, and those of the
   last store to the rows' own place: the phases of the window take turns. */
static inline void turn($Pconst row_block *block, uint32_t i, uint32_t size)
{
    uint8_t moved[TURNED];
    uint8_t next[TURNED];
    uint8_t *const to = AT(block->to) + i;
    (void)memcpy(moved, to + block->up, size);
    for (uint32_t n = 0; n < block->stores; ++n) {
        uint8_t *const store = AT(stores[block->first + n]) + i;
        (void)memcpy(next, store, size);
        (void)memcpy(store, moved, size);
        (void)memcpy(moved, next, size);
    }
    (void)memcpy(to, moved, size);
}

static void next_phase($Pconst row_block *block)
{
    uint32_t i = 0;
    if (block->stores == 0u) {
        (void)memmove(AT(block->to), AT(block->to) + block->up, block->size);
        return;
    }
    for (; i + TURNED <= block->size; i += TURNED) {
        turn($Ablock, i, TURNED);
    }
    for (; i < block->size; ++i) {
        turn($Ablock, i, 1u);
    }
}


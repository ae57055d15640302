static void move_up($Pconst row_block *block)
{
    uint8_t *const to = AT(block->to);
    (void)memmove(to, to + block->up, block->size);
}


#pragma once
#include "basics.h"
/* Bytes in a canonical Huffman code, the most significant bit of a byte first.

   ``code``: the least and the largest length of a code word, the number of words of each length
   (two bytes each), the coded bytes in the order of their words, then the words. Four bytes follow
   that belong to no word. ``table``: work memory for what each byte begins with. */
NOT_INLINED void decode_bytes(const uint8_t *code, uint8_t *out, int32_t count, uint16_t *table)
{
    uint32_t limits[16];
    uint32_t firsts[16];
    const uint32_t least = code[0];
    const uint32_t most = code[1];
    const uint8_t *const words = code + 2;
    const uint8_t *const symbols = words + 2 * (most - least + 1);
    uint32_t next = 0;
    uint32_t index = 0;
    uint32_t filled = 0;
    for (uint32_t length = least; length <= most; ++length) {
        const uint8_t *const pair = words + 2 * (length - least);
        const uint32_t of_length = (uint32_t)(pair[0] | pair[1] << 8);
        firsts[length] = index - (next >> (32u - length));
        next += of_length << (32u - length);
        limits[length] = next;
        for (uint32_t end = index + of_length; index != end; ++index) {
            for (uint32_t i = length <= 8u ? 1u << (8u - length) : 0u; i != 0u; --i) {
                table[filled++] = (uint16_t)(length << 8 | symbols[index]);
            }
        }
    }
    while (filled != 256u) {
        table[filled++] = 0;
    }
    code = symbols + index;
    uint32_t window = 0;
    uint32_t held = 0;
    for (uint8_t *const end = out + count; out != end; ++out) {
        if (held < 16u) {
            window |= (uint32_t)(code[0] << 8 | code[1]) << (16u - held);
            held += 16u;
            code += 2;
        }
        const uint32_t entry = table[window >> 24];
        uint32_t length = entry >> 8;
        if (length != 0u) {
            *out = (uint8_t)entry;
        } else {
            length = max_u32(least, 9u);
            while (length != most && window >= limits[length]) {
                ++length;
            }
            *out = symbols[firsts[length] + (window >> (32u - length))];
        }
        window <<= length;
        held -= length;
    }
}

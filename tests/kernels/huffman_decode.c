/* Decoding by a walk down a code tree, whose depth a pragma tells; worst: only the longest codes. */
#define HUFFMAN_SYMBOLS 12
#define HUFFMAN_DEPTH 5
struct huffman_node {
    struct huffman_node *child[2];
    int symbol;
};
struct huffman_node huffman_nodes[2 * HUFFMAN_DEPTH + 1];
uint32_t huffman_bits[2];
uint8_t huffman_output[HUFFMAN_SYMBOLS];

void huffman_decode(void)
{
    uint32_t position = 0;
    for (int i = 0; i < HUFFMAN_SYMBOLS; i++) {
        const struct huffman_node *node = huffman_nodes;
        _Pragma("loopbound min 1 max 5")
        while (node->child[0]) {
            node = node->child[huffman_bits[position >> 5 & 1] >> (position & 31) & 1];
            position++;
        }
        huffman_output[i] = (uint8_t)node->symbol;
    }
}

static SEPARATE void huffman_tree(void)
{
    for (int depth = 0; depth < HUFFMAN_DEPTH; depth++) {
        struct huffman_node *node = &huffman_nodes[2 * depth];
        node->child[0] = node + 1;
        node->child[1] = node + 2;
        node[1].child[0] = 0;
        node[1].symbol = depth;
    }
    huffman_nodes[2 * HUFFMAN_DEPTH].child[0] = 0;
}

void huffman_decode_random(uint32_t seed)
{
    huffman_tree();
    huffman_bits[0] = next_random(&seed) << 16 | next_random(&seed);
    huffman_bits[1] = next_random(&seed) << 16 | next_random(&seed);
}

void huffman_decode_worst(void)
{
    huffman_tree();
    huffman_bits[0] = huffman_bits[1] = ~0u;
}

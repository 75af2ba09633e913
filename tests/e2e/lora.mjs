// Makes a LoRA adapter of fixed random numbers for a GGUF model. Layout: ggml/docs/gguf.md of llama.cpp, version 3.
import fs from 'node:fs';

const sizes = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };

// The architecture, and the dimensions of each tensor by its name.
function readHead(file) {
    const bytes = fs.readFileSync(file);
    let at = 8;
    const number = () => Number(bytes.readBigUInt64LE((at += 8) - 8));
    const word = () => bytes.readUInt32LE((at += 4) - 4);
    const text = () => {
        const length = number();
        return bytes.toString('utf8', at, (at += length));
    };
    const skip = (type) => {
        if (type === 8) return text();
        if (type !== 9) return void (at += sizes[type]);
        const inner = word();
        for (let left = number(); left > 0; left--) skip(inner);
    };
    const tensors = number();
    let architecture = '';
    for (let left = number(); left > 0; left--) {
        const key = text();
        const value = skip(word());
        if (key === 'general.architecture') architecture = value;
    }
    const dimensions = new Map();
    for (let i = 0; i < tensors; i++) {
        const name = text();
        const count = word();
        dimensions.set(name, Array.from({ length: count }, number));
        at += 12;
    }
    return { architecture, dimensions };
}

export function writeLora(file, model, rank = 4, scale = 0.3) {
    const { architecture, dimensions } = readHead(model);
    let seed = 7;
    const random = (count) => {
        const values = new Float32Array(count);
        for (let i = 0; i < count; i++) {
            seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
            values[i] = (seed / 2 ** 32 - 0.5) * scale;
        }
        return Buffer.from(values.buffer);
    };
    const tensors = [];
    for (const [name, [input, output]] of dimensions) {
        if (!/^blk\.\d+\.attn_output\.weight$/.test(name)) continue;
        tensors.push({ name: `${name}.lora_a`, shape: [input, rank], data: random(input * rank) });
        tensors.push({ name: `${name}.lora_b`, shape: [rank, output], data: random(rank * output) });
    }
    const u32 = (value) => { const b = Buffer.alloc(4); b.writeUInt32LE(value); return b; };
    const u64 = (value) => { const b = Buffer.alloc(8); b.writeBigUInt64LE(BigInt(value)); return b; };
    const f32 = (value) => { const b = Buffer.alloc(4); b.writeFloatLE(value); return b; };
    const text = (value) => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)]);
    const pairs = [['general.architecture', architecture], ['general.type', 'adapter'], ['adapter.type', 'lora']];
    const head = [Buffer.from('GGUF'), u32(3), u64(tensors.length), u64(pairs.length + 1)];
    for (const [key, value] of pairs) head.push(text(key), u32(8), text(value));
    head.push(text('adapter.lora.alpha'), u32(6), f32(rank));
    const padded = (length) => Math.ceil(length / 32) * 32;
    let offset = 0;
    for (const { name, shape, data } of tensors) {
        head.push(text(name), u32(shape.length), ...shape.map(u64), u32(0), u64(offset));
        offset += padded(data.length);
    }
    const start = Buffer.concat(head);
    const parts = [start, Buffer.alloc(padded(start.length) - start.length)];
    for (const { data } of tensors) parts.push(data, Buffer.alloc(padded(data.length) - data.length));
    fs.writeFileSync(file, Buffer.concat(parts));
}

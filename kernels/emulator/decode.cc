// One instruction: the leading bits choose the format. "AMD Instinct MI300 / CDNA4 Instruction Set
// Architecture", chapter "Microcode Formats".
#include "decode.hpp"

#include "decode_parts.hpp"

namespace zyfa::emulator {

Instruction decode(const uint8_t* bytes, size_t size, uint64_t address) {
  Cursor c(bytes, size, address);
  const uint32_t word = c.dword(0);
  c.fixed(1);
  if (!bit(word, 31)) {
    switch (bits(word, 30, 25)) {
      case 0x3e:
        decode_vopc(c, word);
        break;
      case 0x3f:
        decode_vop1(c, word);
        break;
      default:
        decode_vop2(c, word);
        break;
    }
  } else if (!bit(word, 30)) {
    decode_scalar(c, word);
  } else {
    c.fixed(2);
    switch (bits(word, 31, 26)) {
      case 0x30:
        decode_smem(c, word);
        break;
      case 0x34:
        bits(word, 25, 23) == 7 ? decode_vop3p(c, word) : decode_vop3(c, word);
        break;
      case 0x36:
        decode_ds(c, word);
        break;
      case 0x37:
        decode_flat(c, word);
        break;
      case 0x38:
        decode_mubuf(c, word);
        break;
      case 0x3a:
        decode_mtbuf(c, word);
        break;
      default:
        throw DecodeError(format("no format has the leading bits 0x%02x", bits(word, 31, 26)));
    }
  }
  c.out.bytes = static_cast<uint8_t>(4 * c.used());
  return c.out;
}

}  // namespace zyfa::emulator

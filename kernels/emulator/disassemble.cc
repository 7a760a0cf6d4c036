// Instruction to the text LLVM's assembler turns back into the same bytes.
#include "decode.hpp"
#include "disassemble_parts.hpp"

namespace zyfa::emulator {

std::string disassemble(const Instruction& i) {
  switch (i.info->format) {
    case Format::sop1:
    case Format::sop2:
    case Format::sopc:
    case Format::sopk:
    case Format::sopp:
      return scalar_text(i);
    case Format::smem:
      return smem_text(i);
    case Format::vop1:
    case Format::vop2:
    case Format::vopc:
    case Format::vop3:
    case Format::vop3sd:
      return vector_text(i);
    case Format::vop3p:
      return is_matrix(*i.info) ? matrix_text(i) : packed_text(i);
    case Format::ds:
      return ds_text(i);
    case Format::flat:
    case Format::global:
    case Format::scratch:
      return flat_text(i);
    case Format::mubuf:
    case Format::mtbuf:
      return buffer_text(i);
  }
  return i.info->name;
}

}  // namespace zyfa::emulator

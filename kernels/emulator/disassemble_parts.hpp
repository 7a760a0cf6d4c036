// Pieces of assembler text.
#pragma once

#include <string>

#include "instruction.hpp"

namespace zyfa::emulator {

// "mnemonic a, b, c modifier modifier".
class Text {
 public:
  explicit Text(std::string mnemonic) : text_(std::move(mnemonic)) {}
  void operand(const std::string& word) {
    text_ += first_ ? " " : ", ";
    text_ += word;
    first_ = false;
  }
  void modifier(const std::string& word) { text_ += " " + word; }
  void flag(bool on, const char* word) {
    if (on) modifier(word);
  }
  const std::string& str() const { return text_; }

 private:
  std::string text_;
  bool first_ = true;
};

// A register or constant without its modifiers; `spec` is the type a constant is read as.
std::string operand_text(const Operand& operand, const OperandSpec& spec);
// With neg, abs and sext.
std::string source_text(const Operand& operand, const OperandSpec& spec);
// "[1,0,1]" of the lowest `count` bits.
std::string bit_list(unsigned bits, int count);
// "s[2:3]", "v7", "a[0:3]", "vcc".
std::string register_text(const Operand& operand);

std::string scalar_text(const Instruction& i);
std::string smem_text(const Instruction& i);
std::string vector_text(const Instruction& i);
std::string packed_text(const Instruction& i);
std::string matrix_text(const Instruction& i);
std::string ds_text(const Instruction& i);
std::string flat_text(const Instruction& i);
std::string buffer_text(const Instruction& i);

}  // namespace zyfa::emulator

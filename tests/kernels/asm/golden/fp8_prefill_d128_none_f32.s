.amdgcn_target "amdgcn-amd-amdhsa--gfx950"
.amdhsa_code_object_version 5
.text
.globl fp8_prefill_d128_none_f32
.p2align 8
.type fp8_prefill_d128_none_f32,@function
fp8_prefill_d128_none_f32:
  s_load_dwordx16 s[52:67], s[0:1], 0
  s_load_dwordx16 s[68:83], s[0:1], 64
  s_load_dwordx8 s[84:91], s[0:1], 128
  s_load_dwordx2 s[92:93], s[0:1], 160
  v_and_b32 v0, 1023, v0
  v_lshrrev_b32 v228, 6, v0
  s_nop 0
  v_readfirstlane_b32 s5, v228
  v_and_b32 v0, 63, v0  ; from here on the lane
  s_waitcnt lgkmcnt(0)
  s_sub_u32 s37, s87, 1
  s_lshr_b32 s37, s37, 8
  s_sub_u32 s37, s37, s3
  s_cmp_eq_u32 s90, 0
  s_cselect_b32 s3, s3, s37
  s_lshl_b32 s30, s5, 10
  s_lshl_b32 s11, s3, 8
  s_lshl_b32 s37, s5, 5
  s_add_u32 s11, s11, s37
  s_mul_hi_u32 s43, s2, s89
  s_cmp_eq_u32 s89, 0
  s_cselect_b32 s43, s2, s43
  s_mov_b64 s[50:51], 0
  s_cmp_eq_u64 s[64:65], 0
  s_cbranch_scc1 no_table
  s_lshl_b32 s37, s4, 3
  s_add_u32 s44, s64, s37
  s_addc_u32 s45, s65, 0
  s_load_dwordx2 s[50:51], s[44:45], 0
no_table:
  s_mul_i32 s37, s81, s4
  s_mul_i32 s38, s82, s2
  s_add_u32 s37, s37, s38
  s_lshl_b32 s37, s37, 2
  s_add_u32 s44, s58, s37
  s_addc_u32 s45, s59, 0
  s_load_dword s94, s[44:45], 0
  s_mul_i32 s37, s83, s4
  s_mul_i32 s38, s84, s43
  s_add_u32 s37, s37, s38
  s_lshl_b32 s37, s37, 2
  s_add_u32 s46, s60, s37
  s_addc_u32 s47, s61, 0
  s_load_dword s95, s[46:47], 0
  s_mul_i32 s37, s85, s4
  s_mul_i32 s38, s86, s43
  s_add_u32 s37, s37, s38
  s_lshl_b32 s37, s37, 2
  s_add_u32 s48, s62, s37
  s_addc_u32 s49, s63, 0
  s_load_dword s96, s[48:49], 0
  s_mov_b32 s15, 131072
  s_mov_b64 s[6:7], s[54:55]
  s_mul_i32 s37, s70, s4
  s_mul_hi_u32 s38, s70, s4
  s_add_u32 s6, s6, s37
  s_addc_u32 s7, s7, s38
  s_mul_i32 s37, s71, s4
  s_add_u32 s7, s7, s37
  s_mul_i32 s37, s72, s43
  s_mul_hi_u32 s38, s72, s43
  s_add_u32 s6, s6, s37
  s_addc_u32 s7, s7, s38
  s_mul_i32 s37, s73, s43
  s_add_u32 s7, s7, s37
  s_and_b32 s7, s7, 65535  ; the rest of a buffer resource's word
  s_mov_b64 s[8:9], s[56:57]
  s_mul_i32 s37, s74, s4
  s_mul_hi_u32 s38, s74, s4
  s_add_u32 s8, s8, s37
  s_addc_u32 s9, s9, s38
  s_mul_i32 s37, s75, s4
  s_add_u32 s9, s9, s37
  s_mul_i32 s37, s76, s43
  s_mul_hi_u32 s38, s76, s43
  s_add_u32 s8, s8, s37
  s_addc_u32 s9, s9, s38
  s_mul_i32 s37, s77, s43
  s_add_u32 s9, s9, s37
  s_and_b32 s9, s9, 65535  ; the rest of a buffer resource's word
  s_mov_b32 s33, s79
  s_mov_b32 s34, s80
  s_mov_b32 s35, s88
  s_mov_b32 s36, s90
  s_sub_i32 s31, s33, 128
  s_sub_i32 s32, s34, 128
  v_lshrrev_b32 v228, 3, v0
  s_lshl_b32 s37, s5, 3
  v_add_u32 v228, s37, v228
  v_and_b32 v229, 7, v0
  v_bfe_u32 v230, v228, 1, 3
  v_xor_b32 v230, v229, v230
  v_mul_lo_u32 v217, v228, s33
  v_lshl_add_u32 v217, v230, 4, v217
  v_bfe_u32 v230, v228, 1, 1
  v_bfe_u32 v231, v228, 3, 1
  v_lshl_or_b32 v230, v231, 1, v230
  v_lshlrev_b32 v230, 1, v230
  v_xor_b32 v230, v229, v230
  v_mul_lo_u32 v218, v228, s34
  v_lshl_add_u32 v218, v230, 4, v218
  s_cmp_eq_u64 s[64:65], 0
  s_waitcnt lgkmcnt(0)
  s_cselect_b32 s50, 0, s50
  s_cselect_b32 s51, s35, s51
  s_sub_i32 s37, s51, 1
  s_lshl_b32 s38, s3, 8
  s_sub_i32 s41, s87, 1
  s_add_i32 s39, s38, 255
  s_min_i32 s39, s39, s41
  s_add_i32 s17, s39, s91
  s_cmp_eq_u32 s36, 0
  s_cselect_b32 s17, 1073741823, s17
  s_min_i32 s17, s17, s37
  s_ashr_i32 s17, s17, 6
  s_add_i32 s39, s11, 31
  s_min_i32 s39, s39, s41
  s_add_i32 s16, s39, s91
  s_cmp_eq_u32 s36, 0
  s_cselect_b32 s16, 1073741823, s16
  s_min_i32 s16, s16, s37
  s_ashr_i32 s16, s16, 6
  s_cmp_lt_i32 s41, s11
  s_cselect_b32 s16, -1, s16
  s_sub_i32 s21, s16, 1
  s_cmp_eq_u32 s36, 0
  s_cselect_b32 s21, 1073741823, s21
  s_max_i32 s18, s50, 0
  s_add_i32 s40, s38, s91
  s_sub_i32 s40, s40, s92
  s_max_i32 s40, s40, s18
  s_cmp_lt_i32 s92, 0
  s_cselect_b32 s18, s18, s40
  s_lshr_b32 s18, s18, 6
  s_add_i32 s42, s38, s91
  s_cmp_eq_u32 s36, 0
  s_cselect_b32 s42, 1073741823, s42
  s_min_i32 s42, s42, s37
  s_ashr_i32 s42, s42, 6
  s_sub_i32 s42, s42, 1
  s_max_i32 s42, s42, s18
  s_add_i32 s40, s17, 1
  s_cmp_eq_u32 s36, 0
  s_cselect_b32 s42, s40, s42
  s_sub_i32 s19, s40, s42
  s_max_i32 s19, s19, 0
  s_min_i32 s20, s42, s40
  s_sub_i32 s20, s20, s18
  s_max_i32 s20, s20, 0
  s_add_i32 s20, s20, s19
  s_cmp_gt_i32 s51, s50
  s_cselect_b32 s20, s20, 0
  v_and_b32 v228, 31, v0
  v_add_u32 v228, s11, v228
  v_add_u32 v221, s91, v228
  v_mov_b32 v229, s50
  v_mov_b32 v231, s92
  v_sub_u32 v230, v221, v231
  v_max_i32 v230, v229, v230
  s_cmp_lt_i32 s92, 0
  s_cselect_b32 vcc_lo, -1, 0
  s_mov_b32 vcc_hi, vcc_lo
  v_cndmask_b32 v222, v230, v229, vcc
  s_cmp_eq_u32 s36, 0
  s_cselect_b32 vcc_lo, -1, 0
  s_mov_b32 vcc_hi, vcc_lo
  v_mov_b32 v229, s37
  v_min_i32 v230, v221, v229
  v_cndmask_b32 v221, v230, v229, vcc
  s_add_i32 s22, s11, s91
  s_cmp_eq_u32 s36, 0
  s_cselect_b32 s22, 1073741823, s22
  s_min_i32 s22, s22, s37
  s_sub_i32 s22, s22, 62  ; a tile that begins here or later has masked keys
  s_add_i32 s40, s11, 31
  s_add_i32 s40, s40, s91
  s_sub_i32 s40, s40, s92
  s_max_i32 s40, s40, s50
  s_cmp_lt_i32 s92, 0
  s_cselect_b32 s23, s50, s40
  s_mov_b32 s10, 0
  s_add_i32 s37, s10, 0
  s_sub_i32 s41, s37, s19
  s_add_i32 s41, s41, s18
  s_sub_i32 s38, s17, s37
  s_cmp_lt_i32 s37, s19
  s_cselect_b32 s38, s38, s41
  s_cmp_lt_i32 s37, s20
  s_cselect_b32 s40, s35, 0
  s_lshl_b32 s38, s38, 6  ; first key
  s_sub_i32 s40, s40, s38
  s_min_i32 s40, s40, 64
  s_max_i32 s40, s40, 0
  s_add_i32 s39, s10, 0
  s_and_b32 s39, s39, 7
  s_mul_i32 s39, s39, 16384
  s_add_u32 s39, s39, s30
  s_mul_i32 s41, s33, s38
  s_mul_hi_u32 s42, s33, s38
  s_add_u32 s12, s6, s41
  s_addc_u32 s13, s7, s42
  s_add_u32 m0, s39, 0
  s_mul_i32 s41, s40, s33
  s_sub_i32 s41, s41, s31
  s_max_i32 s14, s41, 0
  buffer_load_dwordx4 v217, s[12:15], 0 offen lds
  s_mul_i32 s41, s34, s38
  s_mul_hi_u32 s42, s34, s38
  s_add_u32 s12, s8, s41
  s_addc_u32 s13, s9, s42
  s_add_u32 m0, s39, 8192
  s_mul_i32 s41, s40, s34
  s_sub_i32 s41, s41, s32
  s_max_i32 s14, s41, 0
  buffer_load_dwordx4 v218, s[12:15], 0 offen lds
  s_add_i32 s37, s10, 1
  s_sub_i32 s41, s37, s19
  s_add_i32 s41, s41, s18
  s_sub_i32 s38, s17, s37
  s_cmp_lt_i32 s37, s19
  s_cselect_b32 s38, s38, s41
  s_cmp_lt_i32 s37, s20
  s_cselect_b32 s40, s35, 0
  s_lshl_b32 s38, s38, 6  ; first key
  s_sub_i32 s40, s40, s38
  s_min_i32 s40, s40, 64
  s_max_i32 s40, s40, 0
  s_add_i32 s39, s10, 1
  s_and_b32 s39, s39, 7
  s_mul_i32 s39, s39, 16384
  s_add_u32 s39, s39, s30
  s_mul_i32 s41, s33, s38
  s_mul_hi_u32 s42, s33, s38
  s_add_u32 s12, s6, s41
  s_addc_u32 s13, s7, s42
  s_add_u32 m0, s39, 0
  s_mul_i32 s41, s40, s33
  s_sub_i32 s41, s41, s31
  s_max_i32 s14, s41, 0
  buffer_load_dwordx4 v217, s[12:15], 0 offen lds
  s_mul_i32 s41, s34, s38
  s_mul_hi_u32 s42, s34, s38
  s_add_u32 s12, s8, s41
  s_addc_u32 s13, s9, s42
  s_add_u32 m0, s39, 8192
  s_mul_i32 s41, s40, s34
  s_sub_i32 s41, s41, s32
  s_max_i32 s14, s41, 0
  buffer_load_dwordx4 v218, s[12:15], 0 offen lds
  s_mul_i32 s37, s66, s4
  s_mul_hi_u32 s38, s66, s4
  s_add_u32 s52, s52, s37
  s_addc_u32 s53, s53, s38
  s_mul_i32 s37, s67, s4
  s_add_u32 s53, s53, s37
  s_mul_i32 s37, s68, s2
  s_mul_hi_u32 s38, s68, s2
  s_add_u32 s52, s52, s37
  s_addc_u32 s53, s53, s38
  s_mul_i32 s37, s69, s2
  s_add_u32 s53, s53, s37
  s_mov_b32 s44, s78
  s_mov_b32 s45, 0
  s_mul_i32 s37, s44, s11
  s_mul_hi_u32 s38, s44, s11
  s_add_u32 s52, s52, s37
  s_addc_u32 s53, s53, s38
  s_mul_i32 s37, s45, s11
  s_add_u32 s53, s53, s37
  s_sub_i32 s37, s87, s11
  s_min_i32 s37, s37, 32
  s_sub_i32 s38, s37, 1
  s_mul_i32 s38, s38, s78
  s_add_u32 s38, s38, 128
  s_cmp_gt_i32 s37, 0
  s_cselect_b32 s14, s38, 0
  s_mov_b32 s12, s52
  s_and_b32 s13, s53, 65535
  v_and_b32 v229, 31, v0
  v_mul_lo_u32 v228, v229, s78
  v_lshrrev_b32 v229, 5, v0
  v_lshl_add_u32 v228, v229, 4, v228
  buffer_load_dwordx4 v[2:5], v228, s[12:15], 0 offen offset:0
  buffer_load_dwordx4 v[6:9], v228, s[12:15], 0 offen offset:32
  buffer_load_dwordx4 v[10:13], v228, s[12:15], 0 offen offset:64
  buffer_load_dwordx4 v[14:17], v228, s[12:15], 0 offen offset:96
  s_add_i32 s37, s10, 2
  s_sub_i32 s41, s37, s19
  s_add_i32 s41, s41, s18
  s_sub_i32 s38, s17, s37
  s_cmp_lt_i32 s37, s19
  s_cselect_b32 s38, s38, s41
  s_cmp_lt_i32 s37, s20
  s_cselect_b32 s40, s35, 0
  s_lshl_b32 s38, s38, 6  ; first key
  s_sub_i32 s40, s40, s38
  s_min_i32 s40, s40, 64
  s_max_i32 s40, s40, 0
  s_add_i32 s39, s10, 2
  s_and_b32 s39, s39, 7
  s_mul_i32 s39, s39, 16384
  s_add_u32 s39, s39, s30
  s_mul_i32 s41, s33, s38
  s_mul_hi_u32 s42, s33, s38
  s_add_u32 s12, s6, s41
  s_addc_u32 s13, s7, s42
  s_add_u32 m0, s39, 0
  s_mul_i32 s41, s40, s33
  s_sub_i32 s41, s41, s31
  s_max_i32 s14, s41, 0
  buffer_load_dwordx4 v217, s[12:15], 0 offen lds
  s_mul_i32 s41, s34, s38
  s_mul_hi_u32 s42, s34, s38
  s_add_u32 s12, s8, s41
  s_addc_u32 s13, s9, s42
  s_add_u32 m0, s39, 8192
  s_mul_i32 s41, s40, s34
  s_sub_i32 s41, s41, s32
  s_max_i32 s14, s41, 0
  buffer_load_dwordx4 v218, s[12:15], 0 offen lds
  v_mov_b32 v219, 0xfdf0bdc2
  v_mov_b32 v225, 2139062143
  v_mov_b32 v202, 943208504
  v_mov_b32 v203, 943208504
  v_mov_b32 v204, 943208504
  v_mov_b32 v205, 943208504
  v_mov_b32 v206, 943208504
  v_mov_b32 v207, 943208504
  v_mov_b32 v208, 943208504
  v_mov_b32 v209, 943208504
  v_mov_b64 v[50:51], 0
  v_mov_b64 v[52:53], 0
  v_mov_b64 v[54:55], 0
  v_mov_b64 v[56:57], 0
  v_mov_b64 v[58:59], 0
  v_mov_b64 v[60:61], 0
  v_mov_b64 v[62:63], 0
  v_mov_b64 v[64:65], 0
  v_mov_b64 v[66:67], 0
  v_mov_b64 v[68:69], 0
  v_mov_b64 v[70:71], 0
  v_mov_b64 v[72:73], 0
  v_mov_b64 v[74:75], 0
  v_mov_b64 v[76:77], 0
  v_mov_b64 v[78:79], 0
  v_mov_b64 v[80:81], 0
  v_mov_b64 v[82:83], 0
  v_mov_b64 v[84:85], 0
  v_mov_b64 v[86:87], 0
  v_mov_b64 v[88:89], 0
  v_mov_b64 v[90:91], 0
  v_mov_b64 v[92:93], 0
  v_mov_b64 v[94:95], 0
  v_mov_b64 v[96:97], 0
  v_mov_b64 v[98:99], 0
  v_mov_b64 v[100:101], 0
  v_mov_b64 v[102:103], 0
  v_mov_b64 v[104:105], 0
  v_mov_b64 v[106:107], 0
  v_mov_b64 v[108:109], 0
  v_mov_b64 v[110:111], 0
  v_mov_b64 v[112:113], 0
  v_mov_b64 v[114:115], 0
  v_mov_b64 v[116:117], 0
  v_mov_b64 v[118:119], 0
  v_mov_b64 v[120:121], 0
  v_mov_b64 v[122:123], 0
  v_mov_b64 v[124:125], 0
  v_mov_b64 v[126:127], 0
  v_mov_b64 v[128:129], 0
  v_lshrrev_b32 v228, 5, v0
  v_add_u32 v228, 0, v228
  v_and_b32 v229, 31, v0
  v_bfe_u32 v230, v229, 1, 3
  v_xor_b32 v228, v228, v230
  v_lshlrev_b32 v228, 4, v228
  v_lshl_add_u32 v1, v229, 7, v228
  v_lshrrev_b32 v228, 5, v0
  v_add_u32 v228, 2, v228
  v_and_b32 v229, 31, v0
  v_bfe_u32 v230, v229, 1, 3
  v_xor_b32 v228, v228, v230
  v_lshlrev_b32 v228, 4, v228
  v_lshl_add_u32 v210, v229, 7, v228
  v_lshrrev_b32 v228, 5, v0
  v_add_u32 v228, 4, v228
  v_and_b32 v229, 31, v0
  v_bfe_u32 v230, v229, 1, 3
  v_xor_b32 v228, v228, v230
  v_lshlrev_b32 v228, 4, v228
  v_lshl_add_u32 v211, v229, 7, v228
  v_lshrrev_b32 v228, 5, v0
  v_add_u32 v228, 6, v228
  v_and_b32 v229, 31, v0
  v_bfe_u32 v230, v229, 1, 3
  v_xor_b32 v228, v228, v230
  v_lshlrev_b32 v228, 4, v228
  v_lshl_add_u32 v212, v229, 7, v228
  v_bfe_u32 v228, v0, 1, 2
  v_bfe_u32 v229, v0, 5, 1
  v_lshl_or_b32 v228, v229, 2, v228
  v_bfe_u32 v229, v0, 3, 1
  v_lshl_or_b32 v228, v229, 3, v228
  v_bfe_u32 v229, v228, 1, 1
  v_bfe_u32 v231, v228, 3, 1
  v_lshl_or_b32 v229, v231, 1, v229
  v_bfe_u32 v230, v0, 4, 1
  v_lshlrev_b32 v230, 1, v230
  v_and_or_b32 v230, v0, 1, v230
  v_lshlrev_b32 v230, 3, v230
  v_lshl_add_u32 v230, v228, 7, v230
  v_xor_b32 v231, 0, v229
  v_lshl_add_u32 v213, v231, 5, v230
  v_add_u32 v213, 8192, v213
  v_xor_b32 v231, 1, v229
  v_lshl_add_u32 v214, v231, 5, v230
  v_add_u32 v214, 8192, v214
  v_xor_b32 v231, 2, v229
  v_lshl_add_u32 v215, v231, 5, v230
  v_add_u32 v215, 8192, v215
  v_xor_b32 v231, 3, v229
  v_lshl_add_u32 v216, v231, 5, v230
  v_add_u32 v216, 8192, v216
  v_mov_b32 v228, s93
  v_mul_f32 v228, s94, v228
  v_mul_f32 v228, s95, v228
  v_mul_f32 v228, 0x3fb8aa3b, v228
  s_nop 0
  v_readfirstlane_b32 s24, v228
  s_mov_b32 s27, s96
  s_and_b32 s29, s24, 2147483648
  s_cmp_lg_u32 s29, 0
  s_cselect_b32 s29, 2155905152, 0
  s_and_b32 s24, s24, 2147483647
  s_cmp_eq_u32 s24, 0
  s_cselect_b32 s28, 1, 0
  s_cselect_b32 s24, 1.0, s24
  s_mov_b32 s25, 0
  v_mov_b32 v228, s24
  v_mul_f32 v228, 0x41000000, v228
  s_nop 0
  v_readfirstlane_b32 s26, v228
  s_or_b32 s37, s29, s28
  s_cbranch_scc1 change_query
query_ready:
  s_mov_b32 s59, 0
  s_mov_b32 s10, -1
  s_add_i32 s37, s10, 1
  s_sub_i32 s38, s37, s19
  s_add_i32 s38, s38, s18
  s_sub_i32 s51, s17, s37
  s_cmp_lt_i32 s37, s19
  s_cselect_b32 s51, s51, s38
  s_cmp_le_i32 s51, s16
  s_cselect_b32 s52, 1, 0
  s_cmp_lt_i32 s37, s20
  s_cselect_b32 s52, s52, 0
  s_mov_b32 s10, 0
  s_mov_b32 s58, 0
  s_mov_b32 s56, 0
  s_mov_b32 s57, 0
  s_mov_b32 s43, s51
  s_mov_b32 s50, s52
  s_waitcnt vmcnt(6)
  s_waitcnt vmcnt(2)
  s_barrier
  v_add_u32 v228, s57, v1
  ds_read_b128 v[130:133], v228 offset:0
  v_add_u32 v229, s57, v210
  ds_read_b128 v[134:137], v229 offset:0
  ds_read_b128 v[138:141], v228 offset:4096
  ds_read_b128 v[142:145], v229 offset:4096
  v_add_u32 v230, s57, v211
  ds_read_b128 v[146:149], v230 offset:0
  v_add_u32 v231, s57, v212
  ds_read_b128 v[150:153], v231 offset:0
  ds_read_b128 v[154:157], v230 offset:4096
  ds_read_b128 v[158:161], v231 offset:4096
  s_mov_b32 s57, 16384
  s_cmp_lt_i32 s5, 4
  s_cbranch_scc1 first_group
  s_barrier  ; the second group runs one phase behind
first_group:
products:
  s_setprio 1
  s_xor_b32 s37, s59, 1
  s_xor_b32 s38, s50, 1
  s_or_b32 s37, s37, s38
  s_cbranch_scc1 apart
  s_waitcnt lgkmcnt(6)
  v_mfma_f32_32x32x64_f8f6f4 v[18:33], v[130:137], v[2:9], 0
  v_add_u32 v228, s58, v213
  ds_read_b64_tr_b8 v[162:163], v228 offset:0
  ds_read_b64_tr_b8 v[164:165], v228 offset:2048
  ds_read_b64_tr_b8 v[166:167], v228 offset:4096
  ds_read_b64_tr_b8 v[168:169], v228 offset:6144
  s_add_i32 s37, s10, 3
  s_sub_i32 s41, s37, s19
  s_add_i32 s41, s41, s18
  s_sub_i32 s38, s17, s37
  s_cmp_lt_i32 s37, s19
  s_cselect_b32 s38, s38, s41
  s_cmp_lt_i32 s37, s20
  s_cselect_b32 s40, s35, 0
  s_waitcnt lgkmcnt(8)
  v_mfma_f32_32x32x64_f8f6f4 v[34:49], v[138:145], v[2:9], 0
  v_add_u32 v229, s58, v214
  ds_read_b64_tr_b8 v[170:171], v229 offset:0
  ds_read_b64_tr_b8 v[172:173], v229 offset:2048
  ds_read_b64_tr_b8 v[174:175], v229 offset:4096
  ds_read_b64_tr_b8 v[176:177], v229 offset:6144
  s_lshl_b32 s38, s38, 6  ; first key
  s_sub_i32 s40, s40, s38
  s_min_i32 s40, s40, 64
  s_max_i32 s40, s40, 0
  s_add_i32 s39, s10, 3
  s_and_b32 s39, s39, 7
  s_waitcnt lgkmcnt(10)
  v_mfma_f32_32x32x64_f8f6f4 v[18:33], v[146:153], v[10:17], v[18:33]
  v_add_u32 v230, s58, v215
  ds_read_b64_tr_b8 v[178:179], v230 offset:0
  ds_read_b64_tr_b8 v[180:181], v230 offset:2048
  ds_read_b64_tr_b8 v[182:183], v230 offset:4096
  ds_read_b64_tr_b8 v[184:185], v230 offset:6144
  s_mul_i32 s39, s39, 16384
  s_add_u32 s39, s39, s30
  s_mul_i32 s41, s33, s38
  s_mul_hi_u32 s42, s33, s38
  s_add_u32 s12, s6, s41
  s_addc_u32 s13, s7, s42
  s_waitcnt lgkmcnt(12)
  v_mfma_f32_32x32x64_f8f6f4 v[34:49], v[154:161], v[10:17], v[34:49]
  v_add_u32 v231, s58, v216
  ds_read_b64_tr_b8 v[186:187], v231 offset:0
  ds_read_b64_tr_b8 v[188:189], v231 offset:2048
  ds_read_b64_tr_b8 v[190:191], v231 offset:4096
  ds_read_b64_tr_b8 v[192:193], v231 offset:6144
  s_add_u32 m0, s39, 0
  s_mul_i32 s41, s40, s33
  s_sub_i32 s41, s41, s31
  s_max_i32 s14, s41, 0
  buffer_load_dwordx4 v217, s[12:15], 0 offen lds
  s_mul_i32 s41, s34, s38
  s_mul_hi_u32 s42, s34, s38
  v_mfma_scale_f32_32x32x64_f8f6f4 v[114:129], v[202:209], v[194:201], v[114:129], v225, v223 op_sel_hi:[0,0,0]
  v_add_u32 v228, s57, v1
  ds_read_b128 v[130:133], v228 offset:0
  v_add_u32 v229, s57, v210
  ds_read_b128 v[134:137], v229 offset:0
  s_add_u32 s12, s8, s41
  s_addc_u32 s13, s9, s42
  s_add_u32 m0, s39, 8192
  s_mul_i32 s41, s40, s34
  s_sub_i32 s41, s41, s32
  s_max_i32 s14, s41, 0
  buffer_load_dwordx4 v218, s[12:15], 0 offen lds
  s_waitcnt lgkmcnt(14)
  v_mfma_scale_f32_32x32x64_f8f6f4 v[50:65], v[162:169], v[194:201], v[50:65], v225, v223 op_sel_hi:[0,0,0]
  ds_read_b128 v[138:141], v228 offset:4096
  ds_read_b128 v[142:145], v229 offset:4096
  s_lshl_b32 s37, s43, 6
  s_cmp_ge_i32 s37, s22
  s_cselect_b32 s55, 1, 0
  s_cmp_lt_i32 s37, s23
  s_cselect_b32 s38, 2, 0
  s_waitcnt lgkmcnt(12)
  v_mfma_scale_f32_32x32x64_f8f6f4 v[66:81], v[170:177], v[194:201], v[66:81], v225, v223 op_sel_hi:[0,0,0]
  v_add_u32 v230, s57, v211
  ds_read_b128 v[146:149], v230 offset:0
  v_add_u32 v231, s57, v212
  ds_read_b128 v[150:153], v231 offset:0
  s_or_b32 s55, s55, s38
  s_xor_b32 s53, s50, 1
  s_or_b32 s53, s53, s55
  s_waitcnt lgkmcnt(10)
  v_mfma_scale_f32_32x32x64_f8f6f4 v[82:97], v[178:185], v[194:201], v[82:97], v225, v223 op_sel_hi:[0,0,0]
  ds_read_b128 v[154:157], v230 offset:4096
  ds_read_b128 v[158:161], v231 offset:4096
  s_add_i32 s37, s10, 1
  s_sub_i32 s38, s37, s19
  s_add_i32 s38, s38, s18
  s_sub_i32 s51, s17, s37
  s_cmp_lt_i32 s37, s19
  s_cselect_b32 s51, s51, s38
  s_cmp_le_i32 s51, s16
  s_cselect_b32 s52, 1, 0
  s_cmp_lt_i32 s37, s20
  s_cselect_b32 s52, s52, 0
  s_waitcnt lgkmcnt(8)
  v_mfma_scale_f32_32x32x64_f8f6f4 v[98:113], v[186:193], v[194:201], v[98:113], v225, v223 op_sel_hi:[0,0,0]
  s_mov_b32 s58, s56
  s_mov_b32 s56, s57
  s_add_i32 s57, s10, 2
  s_and_b32 s57, s57, 7
  s_mul_i32 s57, s57, 16384
products_done:
  s_waitcnt vmcnt(2)
  s_setprio 0
  s_barrier
  s_cmp_lg_u32 s53, 0
  s_cbranch_scc1 special
  v_maximum3_f32 v228, v18, v19, v20
  v_maximum3_f32 v228, v228, v21, v22
  v_maximum3_f32 v228, v228, v23, v24
  v_maximum3_f32 v228, v228, v25, v26
  v_maximum3_f32 v228, v228, v27, v28
  v_maximum3_f32 v228, v228, v29, v30
  v_maximum3_f32 v228, v228, v31, v32
  v_maximum3_f32 v228, v228, v33, v34
  v_maximum3_f32 v228, v228, v35, v36
  v_maximum3_f32 v228, v228, v37, v38
  v_maximum3_f32 v228, v228, v39, v40
  v_maximum3_f32 v228, v228, v41, v42
  v_maximum3_f32 v228, v228, v43, v44
  v_maximum3_f32 v228, v228, v45, v46
  v_maximum3_f32 v228, v228, v47, v48
  v_maximum3_f32 v228, v228, v49, v49
  v_mov_b32 v229, v228
  v_add_f32 v230, 0x3e800000, v219
  s_mov_b32 s59, 1
  v_permlane32_swap_b32 v229, v228
  v_maximum3_f32 v220, v228, v229, v229
  v_mul_f32 v228, s24, v220
  v_cmp_nle_f32 vcc, v228, v230
  v_sub_f32 v229, v228, v219
  v_ceil_f32 v229, v229
  v_max_f32 v229, 0xc2700000, v229
  v_min_f32 v229, 0x42700000, v229
  v_add_f32 v226, v219, v229
  s_cbranch_vccnz move_anchor
anchored:
  v_mul_f32 v226, 0x41000000, v226
  v_sub_f32 v226, 0x42fc0000, v226
  v_fma_f32 v228, v220, s26, v226
  v_cmp_lt_f32 vcc, 0x42fd0000, v228
  v_fma_f32 v18, v18, s26, v226
  v_fma_f32 v19, v19, s26, v226
  v_fma_f32 v20, v20, s26, v226
  v_fma_f32 v21, v21, s26, v226
  v_fma_f32 v22, v22, s26, v226
  v_fma_f32 v23, v23, s26, v226
  v_fma_f32 v24, v24, s26, v226
  v_fma_f32 v25, v25, s26, v226
  v_fma_f32 v26, v26, s26, v226
  v_fma_f32 v27, v27, s26, v226
  v_fma_f32 v28, v28, s26, v226
  v_fma_f32 v29, v29, s26, v226
  v_fma_f32 v30, v30, s26, v226
  v_fma_f32 v31, v31, s26, v226
  v_fma_f32 v32, v32, s26, v226
  v_fma_f32 v33, v33, s26, v226
  v_fma_f32 v34, v34, s26, v226
  v_fma_f32 v35, v35, s26, v226
  v_fma_f32 v36, v36, s26, v226
  v_fma_f32 v37, v37, s26, v226
  v_fma_f32 v38, v38, s26, v226
  v_fma_f32 v39, v39, s26, v226
  v_fma_f32 v40, v40, s26, v226
  v_fma_f32 v41, v41, s26, v226
  v_fma_f32 v42, v42, s26, v226
  v_fma_f32 v43, v43, s26, v226
  v_fma_f32 v44, v44, s26, v226
  v_fma_f32 v45, v45, s26, v226
  v_fma_f32 v46, v46, s26, v226
  v_fma_f32 v47, v47, s26, v226
  v_fma_f32 v48, v48, s26, v226
  v_fma_f32 v49, v49, s26, v226
  s_cbranch_vccnz beyond
in_range:
  v_cvt_pk_u8_f32 v194, v18, 0, 0
  v_cvt_pk_u8_f32 v194, v19, 1, v194
  v_cvt_pk_u8_f32 v194, v20, 2, v194
  v_cvt_pk_u8_f32 v194, v21, 3, v194
  v_cvt_pk_u8_f32 v195, v22, 0, 0
  v_cvt_pk_u8_f32 v195, v23, 1, v195
  v_cvt_pk_u8_f32 v195, v24, 2, v195
  v_cvt_pk_u8_f32 v195, v25, 3, v195
  v_cvt_pk_u8_f32 v196, v26, 0, 0
  v_cvt_pk_u8_f32 v196, v27, 1, v196
  v_cvt_pk_u8_f32 v196, v28, 2, v196
  v_cvt_pk_u8_f32 v196, v29, 3, v196
  v_cvt_pk_u8_f32 v197, v30, 0, 0
  v_cvt_pk_u8_f32 v197, v31, 1, v197
  v_cvt_pk_u8_f32 v197, v32, 2, v197
  v_cvt_pk_u8_f32 v197, v33, 3, v197
  v_cvt_pk_u8_f32 v198, v34, 0, 0
  v_cvt_pk_u8_f32 v198, v35, 1, v198
  v_cvt_pk_u8_f32 v198, v36, 2, v198
  v_cvt_pk_u8_f32 v198, v37, 3, v198
  v_cvt_pk_u8_f32 v199, v38, 0, 0
  v_cvt_pk_u8_f32 v199, v39, 1, v199
  v_cvt_pk_u8_f32 v199, v40, 2, v199
  v_cvt_pk_u8_f32 v199, v41, 3, v199
  v_cvt_pk_u8_f32 v200, v42, 0, 0
  v_cvt_pk_u8_f32 v200, v43, 1, v200
  v_cvt_pk_u8_f32 v200, v44, 2, v200
  v_cvt_pk_u8_f32 v200, v45, 3, v200
  v_cvt_pk_u8_f32 v201, v46, 0, 0
  v_cvt_pk_u8_f32 v201, v47, 1, v201
  v_cvt_pk_u8_f32 v201, v48, 2, v201
  v_cvt_pk_u8_f32 v201, v49, 3, v201
  v_cvt_i32_f32 v229, v229
  v_add_u32 v223, 127, v229
probabilities_ready:
  s_add_i32 s10, s10, 1
  s_mov_b32 s43, s51
  s_mov_b32 s50, s52
  s_barrier
  s_branch products
finished:
  s_waitcnt vmcnt(0)
  s_cmp_lt_i32 s5, 4
  s_cbranch_scc0 write_rows
  s_barrier  ; pairs with the extra one of the second group
write_rows:
  s_load_dwordx16 s[64:79], s[0:1], 168
  v_mov_b32 v224, v114
  v_mov_b32 v223, v114
  s_waitcnt lgkmcnt(0)
  s_cmp_eq_u64 s[68:69], 0
  s_cbranch_scc1 no_sinks
  s_lshl_b32 s37, s2, 2
  s_add_u32 s68, s68, s37
  s_addc_u32 s69, s69, 0
  s_load_dword s38, s[68:69], 0
  v_mov_b32 v228, 0x410ce9cd
  v_sub_f32 v228, v228, v219
  v_mov_b32 v229, 0x3fb8aa3b
  s_waitcnt lgkmcnt(0)
  v_fma_f32 v228, s38, v229, v228
  v_exp_f32 v228, v228
  s_nop 0
  v_add_f32 v228, v223, v228
  v_cmp_eq_f32 vcc, 0, v223
  s_nop 1
  v_cndmask_b32 v223, v228, v223, vcc
no_sinks:
  v_rcp_f32 v228, v223
  v_mov_b32 v229, 0
  v_cmp_eq_f32 vcc, 0, v223
  s_nop 1
  v_cndmask_b32 v228, v228, v229, vcc
  v_mul_f32 v50, v228, v50
  v_mul_f32 v51, v228, v51
  v_mul_f32 v52, v228, v52
  v_mul_f32 v53, v228, v53
  v_mul_f32 v54, v228, v54
  v_mul_f32 v55, v228, v55
  v_mul_f32 v56, v228, v56
  v_mul_f32 v57, v228, v57
  v_mul_f32 v58, v228, v58
  v_mul_f32 v59, v228, v59
  v_mul_f32 v60, v228, v60
  v_mul_f32 v61, v228, v61
  v_mul_f32 v62, v228, v62
  v_mul_f32 v63, v228, v63
  v_mul_f32 v64, v228, v64
  v_mul_f32 v65, v228, v65
  v_mul_f32 v50, s27, v50
  v_mul_f32 v51, s27, v51
  v_mul_f32 v52, s27, v52
  v_mul_f32 v53, s27, v53
  v_mul_f32 v54, s27, v54
  v_mul_f32 v55, s27, v55
  v_mul_f32 v56, s27, v56
  v_mul_f32 v57, s27, v57
  v_mul_f32 v58, s27, v58
  v_mul_f32 v59, s27, v59
  v_mul_f32 v60, s27, v60
  v_mul_f32 v61, s27, v61
  v_mul_f32 v62, s27, v62
  v_mul_f32 v63, s27, v63
  v_mul_f32 v64, s27, v64
  v_mul_f32 v65, s27, v65
  v_mul_f32 v66, v228, v66
  v_mul_f32 v67, v228, v67
  v_mul_f32 v68, v228, v68
  v_mul_f32 v69, v228, v69
  v_mul_f32 v70, v228, v70
  v_mul_f32 v71, v228, v71
  v_mul_f32 v72, v228, v72
  v_mul_f32 v73, v228, v73
  v_mul_f32 v74, v228, v74
  v_mul_f32 v75, v228, v75
  v_mul_f32 v76, v228, v76
  v_mul_f32 v77, v228, v77
  v_mul_f32 v78, v228, v78
  v_mul_f32 v79, v228, v79
  v_mul_f32 v80, v228, v80
  v_mul_f32 v81, v228, v81
  v_mul_f32 v66, s27, v66
  v_mul_f32 v67, s27, v67
  v_mul_f32 v68, s27, v68
  v_mul_f32 v69, s27, v69
  v_mul_f32 v70, s27, v70
  v_mul_f32 v71, s27, v71
  v_mul_f32 v72, s27, v72
  v_mul_f32 v73, s27, v73
  v_mul_f32 v74, s27, v74
  v_mul_f32 v75, s27, v75
  v_mul_f32 v76, s27, v76
  v_mul_f32 v77, s27, v77
  v_mul_f32 v78, s27, v78
  v_mul_f32 v79, s27, v79
  v_mul_f32 v80, s27, v80
  v_mul_f32 v81, s27, v81
  v_mul_f32 v82, v228, v82
  v_mul_f32 v83, v228, v83
  v_mul_f32 v84, v228, v84
  v_mul_f32 v85, v228, v85
  v_mul_f32 v86, v228, v86
  v_mul_f32 v87, v228, v87
  v_mul_f32 v88, v228, v88
  v_mul_f32 v89, v228, v89
  v_mul_f32 v90, v228, v90
  v_mul_f32 v91, v228, v91
  v_mul_f32 v92, v228, v92
  v_mul_f32 v93, v228, v93
  v_mul_f32 v94, v228, v94
  v_mul_f32 v95, v228, v95
  v_mul_f32 v96, v228, v96
  v_mul_f32 v97, v228, v97
  v_mul_f32 v82, s27, v82
  v_mul_f32 v83, s27, v83
  v_mul_f32 v84, s27, v84
  v_mul_f32 v85, s27, v85
  v_mul_f32 v86, s27, v86
  v_mul_f32 v87, s27, v87
  v_mul_f32 v88, s27, v88
  v_mul_f32 v89, s27, v89
  v_mul_f32 v90, s27, v90
  v_mul_f32 v91, s27, v91
  v_mul_f32 v92, s27, v92
  v_mul_f32 v93, s27, v93
  v_mul_f32 v94, s27, v94
  v_mul_f32 v95, s27, v95
  v_mul_f32 v96, s27, v96
  v_mul_f32 v97, s27, v97
  v_mul_f32 v98, v228, v98
  v_mul_f32 v99, v228, v99
  v_mul_f32 v100, v228, v100
  v_mul_f32 v101, v228, v101
  v_mul_f32 v102, v228, v102
  v_mul_f32 v103, v228, v103
  v_mul_f32 v104, v228, v104
  v_mul_f32 v105, v228, v105
  v_mul_f32 v106, v228, v106
  v_mul_f32 v107, v228, v107
  v_mul_f32 v108, v228, v108
  v_mul_f32 v109, v228, v109
  v_mul_f32 v110, v228, v110
  v_mul_f32 v111, v228, v111
  v_mul_f32 v112, v228, v112
  v_mul_f32 v113, v228, v113
  v_mul_f32 v98, s27, v98
  v_mul_f32 v99, s27, v99
  v_mul_f32 v100, s27, v100
  v_mul_f32 v101, s27, v101
  v_mul_f32 v102, s27, v102
  v_mul_f32 v103, s27, v103
  v_mul_f32 v104, s27, v104
  v_mul_f32 v105, s27, v105
  v_mul_f32 v106, s27, v106
  v_mul_f32 v107, s27, v107
  v_mul_f32 v108, s27, v108
  v_mul_f32 v109, s27, v109
  v_mul_f32 v110, s27, v110
  v_mul_f32 v111, s27, v111
  v_mul_f32 v112, s27, v112
  v_mul_f32 v113, s27, v113
  s_mul_i32 s37, s70, s4
  s_mul_hi_u32 s38, s70, s4
  s_add_u32 s64, s64, s37
  s_addc_u32 s65, s65, s38
  s_mul_i32 s37, s71, s4
  s_add_u32 s65, s65, s37
  s_mul_i32 s37, s72, s2
  s_mul_hi_u32 s38, s72, s2
  s_add_u32 s64, s64, s37
  s_addc_u32 s65, s65, s38
  s_mul_i32 s37, s73, s2
  s_add_u32 s65, s65, s37
  s_mov_b32 s44, s78
  s_mov_b32 s45, 0
  s_mul_i32 s37, s44, s11
  s_mul_hi_u32 s38, s44, s11
  s_add_u32 s64, s64, s37
  s_addc_u32 s65, s65, s38
  s_mul_i32 s37, s45, s11
  s_add_u32 s65, s65, s37
  s_sub_i32 s37, s79, s11
  s_min_i32 s37, s37, 32
  s_sub_i32 s38, s37, 1
  s_mul_i32 s38, s38, s78
  s_add_u32 s38, s38, 512
  s_cmp_gt_i32 s37, 0
  s_cselect_b32 s14, s38, 0
  s_mov_b32 s12, s64
  s_and_b32 s13, s65, 65535
  v_and_b32 v228, 31, v0
  v_mul_lo_u32 v230, v228, s78
  v_lshrrev_b32 v228, 5, v0
  v_lshl_add_u32 v230, v228, 4, v230
  buffer_store_dwordx4 v[50:53], v230, s[12:15], 0 offen offset:0
  buffer_store_dwordx4 v[54:57], v230, s[12:15], 0 offen offset:32
  buffer_store_dwordx4 v[58:61], v230, s[12:15], 0 offen offset:64
  buffer_store_dwordx4 v[62:65], v230, s[12:15], 0 offen offset:96
  buffer_store_dwordx4 v[66:69], v230, s[12:15], 0 offen offset:128
  buffer_store_dwordx4 v[70:73], v230, s[12:15], 0 offen offset:160
  buffer_store_dwordx4 v[74:77], v230, s[12:15], 0 offen offset:192
  buffer_store_dwordx4 v[78:81], v230, s[12:15], 0 offen offset:224
  buffer_store_dwordx4 v[82:85], v230, s[12:15], 0 offen offset:256
  buffer_store_dwordx4 v[86:89], v230, s[12:15], 0 offen offset:288
  buffer_store_dwordx4 v[90:93], v230, s[12:15], 0 offen offset:320
  buffer_store_dwordx4 v[94:97], v230, s[12:15], 0 offen offset:352
  buffer_store_dwordx4 v[98:101], v230, s[12:15], 0 offen offset:384
  buffer_store_dwordx4 v[102:105], v230, s[12:15], 0 offen offset:416
  buffer_store_dwordx4 v[106:109], v230, s[12:15], 0 offen offset:448
  buffer_store_dwordx4 v[110:113], v230, s[12:15], 0 offen offset:480
  s_cmp_eq_u64 s[66:67], 0
  s_cbranch_scc1 no_lse
  s_mul_i32 s37, s74, s4
  s_mul_hi_u32 s38, s74, s4
  s_add_u32 s66, s66, s37
  s_addc_u32 s67, s67, s38
  s_mul_i32 s37, s75, s4
  s_add_u32 s67, s67, s37
  s_mul_i32 s37, s76, s2
  s_mul_hi_u32 s38, s76, s2
  s_add_u32 s66, s66, s37
  s_addc_u32 s67, s67, s38
  s_mul_i32 s37, s77, s2
  s_add_u32 s67, s67, s37
  s_mov_b32 s39, 4
  s_mov_b32 s44, s39
  s_mov_b32 s45, 0
  s_mul_i32 s37, s44, s11
  s_mul_hi_u32 s38, s44, s11
  s_add_u32 s66, s66, s37
  s_addc_u32 s67, s67, s38
  s_mul_i32 s37, s45, s11
  s_add_u32 s67, s67, s37
  s_sub_i32 s37, s79, s11
  s_min_i32 s37, s37, 32
  s_sub_i32 s38, s37, 1
  s_mul_i32 s38, s38, 4
  s_add_u32 s38, s38, 4
  s_cmp_gt_i32 s37, 0
  s_cselect_b32 s14, s38, 0
  s_mov_b32 s12, s66
  s_and_b32 s13, s67, 65535
  v_log_f32 v228, v224
  s_nop 0
  v_add_f32 v228, v219, v228
  v_mov_b32 v230, 0xc10ce9cd
  v_add_f32 v228, v230, v228
  v_mul_f32 v228, 0x3f317218, v228
  v_mov_b32 v230, 0xff800000
  v_cmp_eq_f32 vcc, 0, v224
  s_nop 1
  v_cndmask_b32 v228, v228, v230, vcc
  v_lshlrev_b32 v229, 2, v0  ; lanes 32..63 repeat the rows: beyond the resource, dropped
  buffer_store_dword v228, v229, s[12:15], 0 offen
no_lse:
  s_endpgm
change_query:
  s_waitcnt vmcnt(5)
  v_xor_b32 v2, s29, v2
  v_xor_b32 v3, s29, v3
  v_xor_b32 v4, s29, v4
  v_xor_b32 v5, s29, v5
  s_waitcnt vmcnt(4)
  v_xor_b32 v6, s29, v6
  v_xor_b32 v7, s29, v7
  v_xor_b32 v8, s29, v8
  v_xor_b32 v9, s29, v9
  s_waitcnt vmcnt(3)
  v_xor_b32 v10, s29, v10
  v_xor_b32 v11, s29, v11
  v_xor_b32 v12, s29, v12
  v_xor_b32 v13, s29, v13
  s_waitcnt vmcnt(2)
  v_xor_b32 v14, s29, v14
  v_xor_b32 v15, s29, v15
  v_xor_b32 v16, s29, v16
  v_xor_b32 v17, s29, v17
  s_cmp_eq_u32 s28, 0
  s_cbranch_scc1 query_ready
  v_and_b32 v228, 2139062143, v2
  v_add_u32 v228, 16843009, v228
  v_and_b32 v228, 2155905152, v228
  v_lshrrev_b32 v229, 7, v228
  v_sub_u32 v229, v228, v229
  v_or_b32 v228, v229, v228
  v_and_b32 v2, v228, v2
  v_and_b32 v228, 2139062143, v3
  v_add_u32 v228, 16843009, v228
  v_and_b32 v228, 2155905152, v228
  v_lshrrev_b32 v229, 7, v228
  v_sub_u32 v229, v228, v229
  v_or_b32 v228, v229, v228
  v_and_b32 v3, v228, v3
  v_and_b32 v228, 2139062143, v4
  v_add_u32 v228, 16843009, v228
  v_and_b32 v228, 2155905152, v228
  v_lshrrev_b32 v229, 7, v228
  v_sub_u32 v229, v228, v229
  v_or_b32 v228, v229, v228
  v_and_b32 v4, v228, v4
  v_and_b32 v228, 2139062143, v5
  v_add_u32 v228, 16843009, v228
  v_and_b32 v228, 2155905152, v228
  v_lshrrev_b32 v229, 7, v228
  v_sub_u32 v229, v228, v229
  v_or_b32 v228, v229, v228
  v_and_b32 v5, v228, v5
  v_and_b32 v228, 2139062143, v6
  v_add_u32 v228, 16843009, v228
  v_and_b32 v228, 2155905152, v228
  v_lshrrev_b32 v229, 7, v228
  v_sub_u32 v229, v228, v229
  v_or_b32 v228, v229, v228
  v_and_b32 v6, v228, v6
  v_and_b32 v228, 2139062143, v7
  v_add_u32 v228, 16843009, v228
  v_and_b32 v228, 2155905152, v228
  v_lshrrev_b32 v229, 7, v228
  v_sub_u32 v229, v228, v229
  v_or_b32 v228, v229, v228
  v_and_b32 v7, v228, v7
  v_and_b32 v228, 2139062143, v8
  v_add_u32 v228, 16843009, v228
  v_and_b32 v228, 2155905152, v228
  v_lshrrev_b32 v229, 7, v228
  v_sub_u32 v229, v228, v229
  v_or_b32 v228, v229, v228
  v_and_b32 v8, v228, v8
  v_and_b32 v228, 2139062143, v9
  v_add_u32 v228, 16843009, v228
  v_and_b32 v228, 2155905152, v228
  v_lshrrev_b32 v229, 7, v228
  v_sub_u32 v229, v228, v229
  v_or_b32 v228, v229, v228
  v_and_b32 v9, v228, v9
  v_and_b32 v228, 2139062143, v10
  v_add_u32 v228, 16843009, v228
  v_and_b32 v228, 2155905152, v228
  v_lshrrev_b32 v229, 7, v228
  v_sub_u32 v229, v228, v229
  v_or_b32 v228, v229, v228
  v_and_b32 v10, v228, v10
  v_and_b32 v228, 2139062143, v11
  v_add_u32 v228, 16843009, v228
  v_and_b32 v228, 2155905152, v228
  v_lshrrev_b32 v229, 7, v228
  v_sub_u32 v229, v228, v229
  v_or_b32 v228, v229, v228
  v_and_b32 v11, v228, v11
  v_and_b32 v228, 2139062143, v12
  v_add_u32 v228, 16843009, v228
  v_and_b32 v228, 2155905152, v228
  v_lshrrev_b32 v229, 7, v228
  v_sub_u32 v229, v228, v229
  v_or_b32 v228, v229, v228
  v_and_b32 v12, v228, v12
  v_and_b32 v228, 2139062143, v13
  v_add_u32 v228, 16843009, v228
  v_and_b32 v228, 2155905152, v228
  v_lshrrev_b32 v229, 7, v228
  v_sub_u32 v229, v228, v229
  v_or_b32 v228, v229, v228
  v_and_b32 v13, v228, v13
  v_and_b32 v228, 2139062143, v14
  v_add_u32 v228, 16843009, v228
  v_and_b32 v228, 2155905152, v228
  v_lshrrev_b32 v229, 7, v228
  v_sub_u32 v229, v228, v229
  v_or_b32 v228, v229, v228
  v_and_b32 v14, v228, v14
  v_and_b32 v228, 2139062143, v15
  v_add_u32 v228, 16843009, v228
  v_and_b32 v228, 2155905152, v228
  v_lshrrev_b32 v229, 7, v228
  v_sub_u32 v229, v228, v229
  v_or_b32 v228, v229, v228
  v_and_b32 v15, v228, v15
  v_and_b32 v228, 2139062143, v16
  v_add_u32 v228, 16843009, v228
  v_and_b32 v228, 2155905152, v228
  v_lshrrev_b32 v229, 7, v228
  v_sub_u32 v229, v228, v229
  v_or_b32 v228, v229, v228
  v_and_b32 v16, v228, v16
  v_and_b32 v228, 2139062143, v17
  v_add_u32 v228, 16843009, v228
  v_and_b32 v228, 2155905152, v228
  v_lshrrev_b32 v229, 7, v228
  v_sub_u32 v229, v228, v229
  v_or_b32 v228, v229, v228
  v_and_b32 v17, v228, v17
  s_branch query_ready
apart:
  s_cmp_eq_u32 s59, 0
  s_cbranch_scc1 nothing_at_hand
  v_add_u32 v228, s58, v213
  ds_read_b64_tr_b8 v[162:163], v228 offset:0
  ds_read_b64_tr_b8 v[164:165], v228 offset:2048
  ds_read_b64_tr_b8 v[166:167], v228 offset:4096
  ds_read_b64_tr_b8 v[168:169], v228 offset:6144
  v_add_u32 v229, s58, v214
  ds_read_b64_tr_b8 v[170:171], v229 offset:0
  ds_read_b64_tr_b8 v[172:173], v229 offset:2048
  ds_read_b64_tr_b8 v[174:175], v229 offset:4096
  ds_read_b64_tr_b8 v[176:177], v229 offset:6144
  v_add_u32 v230, s58, v215
  ds_read_b64_tr_b8 v[178:179], v230 offset:0
  ds_read_b64_tr_b8 v[180:181], v230 offset:2048
  ds_read_b64_tr_b8 v[182:183], v230 offset:4096
  ds_read_b64_tr_b8 v[184:185], v230 offset:6144
  v_add_u32 v231, s58, v216
  ds_read_b64_tr_b8 v[186:187], v231 offset:0
  ds_read_b64_tr_b8 v[188:189], v231 offset:2048
  ds_read_b64_tr_b8 v[190:191], v231 offset:4096
  ds_read_b64_tr_b8 v[192:193], v231 offset:6144
  s_and_b32 s37, s59, 4
  s_cbranch_scc1 hidden_keys
  s_cmp_eq_u32 s50, 0
  s_cbranch_scc1 accumulate
  s_waitcnt lgkmcnt(15)
  v_mfma_f32_32x32x64_f8f6f4 v[18:33], v[130:137], v[2:9], 0
  v_mfma_f32_32x32x64_f8f6f4 v[34:49], v[138:145], v[2:9], 0
  v_mfma_f32_32x32x64_f8f6f4 v[18:33], v[146:153], v[10:17], v[18:33]
  v_mfma_f32_32x32x64_f8f6f4 v[34:49], v[154:161], v[10:17], v[34:49]
accumulate:
  v_mfma_scale_f32_32x32x64_f8f6f4 v[114:129], v[202:209], v[194:201], v[114:129], v225, v223 op_sel_hi:[0,0,0]
  s_add_i32 s37, s10, 3
  s_sub_i32 s41, s37, s19
  s_add_i32 s41, s41, s18
  s_sub_i32 s38, s17, s37
  s_cmp_lt_i32 s37, s19
  s_cselect_b32 s38, s38, s41
  s_cmp_lt_i32 s37, s20
  s_cselect_b32 s40, s35, 0
  s_lshl_b32 s38, s38, 6  ; first key
  s_sub_i32 s40, s40, s38
  s_waitcnt lgkmcnt(12)
  v_mfma_scale_f32_32x32x64_f8f6f4 v[50:65], v[162:169], v[194:201], v[50:65], v225, v223 op_sel_hi:[0,0,0]
  s_min_i32 s40, s40, 64
  s_max_i32 s40, s40, 0
  s_add_i32 s39, s10, 3
  s_and_b32 s39, s39, 7
  s_mul_i32 s39, s39, 16384
  s_add_u32 s39, s39, s30
  s_mul_i32 s41, s33, s38
  s_mul_hi_u32 s42, s33, s38
  s_add_u32 s12, s6, s41
  s_addc_u32 s13, s7, s42
  s_add_u32 m0, s39, 0
  s_waitcnt lgkmcnt(8)
  v_mfma_scale_f32_32x32x64_f8f6f4 v[66:81], v[170:177], v[194:201], v[66:81], v225, v223 op_sel_hi:[0,0,0]
  s_mul_i32 s41, s40, s33
  s_sub_i32 s41, s41, s31
  s_max_i32 s14, s41, 0
  buffer_load_dwordx4 v217, s[12:15], 0 offen lds
  s_mul_i32 s41, s34, s38
  s_mul_hi_u32 s42, s34, s38
  s_add_u32 s12, s8, s41
  s_addc_u32 s13, s9, s42
  s_add_u32 m0, s39, 8192
  s_mul_i32 s41, s40, s34
  s_waitcnt lgkmcnt(4)
  v_mfma_scale_f32_32x32x64_f8f6f4 v[82:97], v[178:185], v[194:201], v[82:97], v225, v223 op_sel_hi:[0,0,0]
  s_sub_i32 s41, s41, s32
  s_max_i32 s14, s41, 0
  buffer_load_dwordx4 v218, s[12:15], 0 offen lds
  s_lshl_b32 s37, s43, 6
  s_cmp_ge_i32 s37, s22
  s_cselect_b32 s55, 1, 0
  s_cmp_lt_i32 s37, s23
  s_cselect_b32 s38, 2, 0
  s_or_b32 s55, s55, s38
  s_xor_b32 s53, s50, 1
  s_or_b32 s53, s53, s55
  s_waitcnt lgkmcnt(0)
  v_mfma_scale_f32_32x32x64_f8f6f4 v[98:113], v[186:193], v[194:201], v[98:113], v225, v223 op_sel_hi:[0,0,0]
  s_add_i32 s37, s10, 1
  s_sub_i32 s38, s37, s19
  s_add_i32 s38, s38, s18
  s_sub_i32 s51, s17, s37
  s_cmp_lt_i32 s37, s19
  s_cselect_b32 s51, s51, s38
  s_cmp_le_i32 s51, s16
  s_cselect_b32 s52, 1, 0
  s_cmp_lt_i32 s37, s20
  s_cselect_b32 s52, s52, 0
  v_add_u32 v228, s57, v1
  ds_read_b128 v[130:133], v228 offset:0
  v_add_u32 v229, s57, v210
  ds_read_b128 v[134:137], v229 offset:0
  ds_read_b128 v[138:141], v228 offset:4096
  ds_read_b128 v[142:145], v229 offset:4096
  v_add_u32 v230, s57, v211
  ds_read_b128 v[146:149], v230 offset:0
  v_add_u32 v231, s57, v212
  ds_read_b128 v[150:153], v231 offset:0
  ds_read_b128 v[154:157], v230 offset:4096
  ds_read_b128 v[158:161], v231 offset:4096
  s_mov_b32 s58, s56
  s_mov_b32 s56, s57
  s_add_i32 s57, s10, 2
  s_and_b32 s57, s57, 7
  s_mul_i32 s57, s57, 16384
  s_branch products_done
nothing_at_hand:
  s_cmp_eq_u32 s50, 0
  s_cbranch_scc1 nothing_to_do
  s_waitcnt lgkmcnt(6)
  v_mfma_f32_32x32x64_f8f6f4 v[18:33], v[130:137], v[2:9], 0
  s_add_i32 s37, s10, 3
  s_sub_i32 s41, s37, s19
  s_add_i32 s41, s41, s18
  s_sub_i32 s38, s17, s37
  s_cmp_lt_i32 s37, s19
  s_cselect_b32 s38, s38, s41
  s_cmp_lt_i32 s37, s20
  s_cselect_b32 s40, s35, 0
  s_lshl_b32 s38, s38, 6  ; first key
  s_sub_i32 s40, s40, s38
  s_min_i32 s40, s40, 64
  s_max_i32 s40, s40, 0
  s_add_i32 s39, s10, 3
  s_waitcnt lgkmcnt(4)
  v_mfma_f32_32x32x64_f8f6f4 v[34:49], v[138:145], v[2:9], 0
  s_and_b32 s39, s39, 7
  s_mul_i32 s39, s39, 16384
  s_add_u32 s39, s39, s30
  s_mul_i32 s41, s33, s38
  s_mul_hi_u32 s42, s33, s38
  s_add_u32 s12, s6, s41
  s_addc_u32 s13, s7, s42
  s_add_u32 m0, s39, 0
  s_mul_i32 s41, s40, s33
  s_sub_i32 s41, s41, s31
  s_max_i32 s14, s41, 0
  buffer_load_dwordx4 v217, s[12:15], 0 offen lds
  s_mul_i32 s41, s34, s38
  s_waitcnt lgkmcnt(2)
  v_mfma_f32_32x32x64_f8f6f4 v[18:33], v[146:153], v[10:17], v[18:33]
  s_mul_hi_u32 s42, s34, s38
  s_add_u32 s12, s8, s41
  s_addc_u32 s13, s9, s42
  s_add_u32 m0, s39, 8192
  s_mul_i32 s41, s40, s34
  s_sub_i32 s41, s41, s32
  s_max_i32 s14, s41, 0
  buffer_load_dwordx4 v218, s[12:15], 0 offen lds
  s_lshl_b32 s37, s43, 6
  s_cmp_ge_i32 s37, s22
  s_cselect_b32 s55, 1, 0
  s_cmp_lt_i32 s37, s23
  s_cselect_b32 s38, 2, 0
  s_waitcnt lgkmcnt(0)
  v_mfma_f32_32x32x64_f8f6f4 v[34:49], v[154:161], v[10:17], v[34:49]
  s_or_b32 s55, s55, s38
  s_xor_b32 s53, s50, 1
  s_or_b32 s53, s53, s55
  s_add_i32 s37, s10, 1
  s_sub_i32 s38, s37, s19
  s_add_i32 s38, s38, s18
  s_sub_i32 s51, s17, s37
  s_cmp_lt_i32 s37, s19
  s_cselect_b32 s51, s51, s38
  s_cmp_le_i32 s51, s16
  s_cselect_b32 s52, 1, 0
  s_cmp_lt_i32 s37, s20
  s_cselect_b32 s52, s52, 0
  v_add_u32 v228, s57, v1
  ds_read_b128 v[130:133], v228 offset:0
  v_add_u32 v229, s57, v210
  ds_read_b128 v[134:137], v229 offset:0
  ds_read_b128 v[138:141], v228 offset:4096
  ds_read_b128 v[142:145], v229 offset:4096
  v_add_u32 v230, s57, v211
  ds_read_b128 v[146:149], v230 offset:0
  v_add_u32 v231, s57, v212
  ds_read_b128 v[150:153], v231 offset:0
  ds_read_b128 v[154:157], v230 offset:4096
  ds_read_b128 v[158:161], v231 offset:4096
  s_mov_b32 s58, s56
  s_mov_b32 s56, s57
  s_add_i32 s57, s10, 2
  s_and_b32 s57, s57, 7
  s_mul_i32 s57, s57, 16384
  s_branch products_done
nothing_to_do:
  s_add_i32 s37, s10, 3
  s_sub_i32 s41, s37, s19
  s_add_i32 s41, s41, s18
  s_sub_i32 s38, s17, s37
  s_cmp_lt_i32 s37, s19
  s_cselect_b32 s38, s38, s41
  s_cmp_lt_i32 s37, s20
  s_cselect_b32 s40, s35, 0
  s_lshl_b32 s38, s38, 6  ; first key
  s_sub_i32 s40, s40, s38
  s_min_i32 s40, s40, 64
  s_max_i32 s40, s40, 0
  s_add_i32 s39, s10, 3
  s_and_b32 s39, s39, 7
  s_mul_i32 s39, s39, 16384
  s_add_u32 s39, s39, s30
  s_mul_i32 s41, s33, s38
  s_mul_hi_u32 s42, s33, s38
  s_add_u32 s12, s6, s41
  s_addc_u32 s13, s7, s42
  s_add_u32 m0, s39, 0
  s_mul_i32 s41, s40, s33
  s_sub_i32 s41, s41, s31
  s_max_i32 s14, s41, 0
  buffer_load_dwordx4 v217, s[12:15], 0 offen lds
  s_mul_i32 s41, s34, s38
  s_mul_hi_u32 s42, s34, s38
  s_add_u32 s12, s8, s41
  s_addc_u32 s13, s9, s42
  s_add_u32 m0, s39, 8192
  s_mul_i32 s41, s40, s34
  s_sub_i32 s41, s41, s32
  s_max_i32 s14, s41, 0
  buffer_load_dwordx4 v218, s[12:15], 0 offen lds
  s_lshl_b32 s37, s43, 6
  s_cmp_ge_i32 s37, s22
  s_cselect_b32 s55, 1, 0
  s_cmp_lt_i32 s37, s23
  s_cselect_b32 s38, 2, 0
  s_or_b32 s55, s55, s38
  s_xor_b32 s53, s50, 1
  s_or_b32 s53, s53, s55
  s_add_i32 s37, s10, 1
  s_sub_i32 s38, s37, s19
  s_add_i32 s38, s38, s18
  s_sub_i32 s51, s17, s37
  s_cmp_lt_i32 s37, s19
  s_cselect_b32 s51, s51, s38
  s_cmp_le_i32 s51, s16
  s_cselect_b32 s52, 1, 0
  s_cmp_lt_i32 s37, s20
  s_cselect_b32 s52, s52, 0
  v_add_u32 v228, s57, v1
  s_waitcnt lgkmcnt(7)
  ds_read_b128 v[130:133], v228 offset:0
  v_add_u32 v229, s57, v210
  s_waitcnt lgkmcnt(7)
  ds_read_b128 v[134:137], v229 offset:0
  s_waitcnt lgkmcnt(7)
  ds_read_b128 v[138:141], v228 offset:4096
  s_waitcnt lgkmcnt(7)
  ds_read_b128 v[142:145], v229 offset:4096
  v_add_u32 v230, s57, v211
  s_waitcnt lgkmcnt(7)
  ds_read_b128 v[146:149], v230 offset:0
  v_add_u32 v231, s57, v212
  s_waitcnt lgkmcnt(7)
  ds_read_b128 v[150:153], v231 offset:0
  s_waitcnt lgkmcnt(7)
  ds_read_b128 v[154:157], v230 offset:4096
  s_waitcnt lgkmcnt(7)
  ds_read_b128 v[158:161], v231 offset:4096
  s_mov_b32 s58, s56
  s_mov_b32 s56, s57
  s_add_i32 s57, s10, 2
  s_and_b32 s57, s57, 7
  s_mul_i32 s57, s57, 16384
  s_branch products_done
hidden_keys:
  s_cmp_eq_u32 s50, 0
  s_cbranch_scc1 hidden_keys_only
  s_waitcnt lgkmcnt(15)
  v_mfma_f32_32x32x64_f8f6f4 v[18:33], v[130:137], v[2:9], 0
  v_and_b32 v229, 2139062143, v162
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v163
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, 0
  s_waitcnt lgkmcnt(14)
  v_and_b32 v229, 2139062143, v164
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v165
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(13)
  v_and_b32 v229, 2139062143, v166
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v167
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(12)
  v_and_b32 v229, 2139062143, v168
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v169
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  v_mfma_f32_32x32x64_f8f6f4 v[34:49], v[138:145], v[2:9], 0
  s_waitcnt lgkmcnt(11)
  v_and_b32 v229, 2139062143, v170
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v171
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(10)
  v_and_b32 v229, 2139062143, v172
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v173
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(9)
  v_and_b32 v229, 2139062143, v174
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v175
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(8)
  v_and_b32 v229, 2139062143, v176
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v177
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  v_mfma_f32_32x32x64_f8f6f4 v[18:33], v[146:153], v[10:17], v[18:33]
  s_waitcnt lgkmcnt(7)
  v_and_b32 v229, 2139062143, v178
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v179
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(6)
  v_and_b32 v229, 2139062143, v180
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v181
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(5)
  v_and_b32 v229, 2139062143, v182
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v183
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(4)
  v_and_b32 v229, 2139062143, v184
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v185
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  v_mfma_f32_32x32x64_f8f6f4 v[34:49], v[154:161], v[10:17], v[34:49]
  s_waitcnt lgkmcnt(3)
  v_and_b32 v229, 2139062143, v186
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v187
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(2)
  v_and_b32 v229, 2139062143, v188
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v189
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(1)
  v_and_b32 v229, 2139062143, v190
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v191
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(0)
  v_and_b32 v229, 2139062143, v192
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v193
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_branch judge
hidden_keys_only:
  s_waitcnt lgkmcnt(15)
  v_and_b32 v229, 2139062143, v162
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v163
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, 0
  s_waitcnt lgkmcnt(14)
  v_and_b32 v229, 2139062143, v164
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v165
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(13)
  v_and_b32 v229, 2139062143, v166
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v167
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(12)
  v_and_b32 v229, 2139062143, v168
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v169
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(11)
  v_and_b32 v229, 2139062143, v170
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v171
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(10)
  v_and_b32 v229, 2139062143, v172
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v173
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(9)
  v_and_b32 v229, 2139062143, v174
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v175
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(8)
  v_and_b32 v229, 2139062143, v176
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v177
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(7)
  v_and_b32 v229, 2139062143, v178
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v179
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(6)
  v_and_b32 v229, 2139062143, v180
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v181
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(5)
  v_and_b32 v229, 2139062143, v182
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v183
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(4)
  v_and_b32 v229, 2139062143, v184
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v185
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(3)
  v_and_b32 v229, 2139062143, v186
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v187
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(2)
  v_and_b32 v229, 2139062143, v188
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v189
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(1)
  v_and_b32 v229, 2139062143, v190
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v191
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
  s_waitcnt lgkmcnt(0)
  v_and_b32 v229, 2139062143, v192
  v_add_u32 v229, 16843009, v229
  v_and_b32 v230, 2139062143, v193
  v_add_u32 v230, 16843009, v230
  v_or3_b32 v228, v229, v230, v228
judge:
  v_and_b32 v228, 2155905152, v228
  v_cmp_ne_u32 vcc, 0, v228
  s_nop 4
  s_cbranch_vccnz nan
no_nan:
  s_branch accumulate
move_anchor:
  v_sub_f32 v230, v219, v228
  v_exp_f32 v230, v230
  v_mov_b32 v231, 1.0
  v_cndmask_b32 v230, v231, v230, vcc
  v_cndmask_b32 v219, v219, v228, vcc
  v_pk_mul_f32 v[50:51], v[50:51], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[52:53], v[52:53], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[54:55], v[54:55], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[56:57], v[56:57], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[58:59], v[58:59], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[60:61], v[60:61], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[62:63], v[62:63], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[64:65], v[64:65], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[66:67], v[66:67], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[68:69], v[68:69], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[70:71], v[70:71], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[72:73], v[72:73], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[74:75], v[74:75], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[76:77], v[76:77], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[78:79], v[78:79], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[80:81], v[80:81], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[82:83], v[82:83], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[84:85], v[84:85], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[86:87], v[86:87], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[88:89], v[88:89], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[90:91], v[90:91], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[92:93], v[92:93], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[94:95], v[94:95], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[96:97], v[96:97], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[98:99], v[98:99], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[100:101], v[100:101], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[102:103], v[102:103], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[104:105], v[104:105], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[106:107], v[106:107], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[108:109], v[108:109], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[110:111], v[110:111], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[112:113], v[112:113], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[114:115], v[114:115], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[116:117], v[116:117], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[118:119], v[118:119], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[120:121], v[120:121], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[122:123], v[122:123], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[124:125], v[124:125], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[126:127], v[126:127], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[128:129], v[128:129], v[230:231] op_sel_hi:[1,0]
  v_sub_f32 v229, v228, v219
  v_ceil_f32 v229, v229
  v_max_f32 v229, 0xc2700000, v229
  v_min_f32 v229, 0x42700000, v229
  v_add_f32 v226, v219, v229
  s_branch anchored
beyond:
  v_min_f32 v18, 0x42fc0000, v18
  v_min_f32 v19, 0x42fc0000, v19
  v_min_f32 v20, 0x42fc0000, v20
  v_min_f32 v21, 0x42fc0000, v21
  v_min_f32 v22, 0x42fc0000, v22
  v_min_f32 v23, 0x42fc0000, v23
  v_min_f32 v24, 0x42fc0000, v24
  v_min_f32 v25, 0x42fc0000, v25
  v_min_f32 v26, 0x42fc0000, v26
  v_min_f32 v27, 0x42fc0000, v27
  v_min_f32 v28, 0x42fc0000, v28
  v_min_f32 v29, 0x42fc0000, v29
  v_min_f32 v30, 0x42fc0000, v30
  v_min_f32 v31, 0x42fc0000, v31
  v_min_f32 v32, 0x42fc0000, v32
  v_min_f32 v33, 0x42fc0000, v33
  v_min_f32 v34, 0x42fc0000, v34
  v_min_f32 v35, 0x42fc0000, v35
  v_min_f32 v36, 0x42fc0000, v36
  v_min_f32 v37, 0x42fc0000, v37
  v_min_f32 v38, 0x42fc0000, v38
  v_min_f32 v39, 0x42fc0000, v39
  v_min_f32 v40, 0x42fc0000, v40
  v_min_f32 v41, 0x42fc0000, v41
  v_min_f32 v42, 0x42fc0000, v42
  v_min_f32 v43, 0x42fc0000, v43
  v_min_f32 v44, 0x42fc0000, v44
  v_min_f32 v45, 0x42fc0000, v45
  v_min_f32 v46, 0x42fc0000, v46
  v_min_f32 v47, 0x42fc0000, v47
  v_min_f32 v48, 0x42fc0000, v48
  v_min_f32 v49, 0x42fc0000, v49
  s_branch in_range
special:
  s_cmp_lt_i32 s10, s20
  s_cbranch_scc0 finished
  s_mov_b32 s59, 0
  s_cmp_eq_u32 s50, 0
  s_cbranch_scc1 probabilities_ready
  s_lshl_b32 s37, s43, 6
  v_lshrrev_b32 v230, 5, v0
  v_lshlrev_b32 v230, 2, v230
  v_add_u32 v230, s37, v230
  v_sub_u32 v228, v222, v230
  v_sub_u32 v229, v221, v230
  v_mov_b32 v230, 0xff800000
  s_and_b32 s37, s55, 1
  s_cbranch_scc0 none_above
  v_cmp_gt_i32 vcc, 0, v229
  v_cmp_gt_i32 s[44:45], 1, v229
  v_cmp_gt_i32 s[46:47], 2, v229
  v_cmp_gt_i32 s[48:49], 3, v229
  v_cndmask_b32 v18, v18, v230, vcc
  v_cndmask_b32 v19, v19, v230, s[44:45]
  v_cndmask_b32 v20, v20, v230, s[46:47]
  v_cndmask_b32 v21, v21, v230, s[48:49]
  v_cmp_gt_i32 vcc, 8, v229
  v_cmp_gt_i32 s[44:45], 9, v229
  v_cmp_gt_i32 s[46:47], 10, v229
  v_cmp_gt_i32 s[48:49], 11, v229
  v_cndmask_b32 v22, v22, v230, vcc
  v_cndmask_b32 v23, v23, v230, s[44:45]
  v_cndmask_b32 v24, v24, v230, s[46:47]
  v_cndmask_b32 v25, v25, v230, s[48:49]
  v_cmp_gt_i32 vcc, 16, v229
  v_cmp_gt_i32 s[44:45], 17, v229
  v_cmp_gt_i32 s[46:47], 18, v229
  v_cmp_gt_i32 s[48:49], 19, v229
  v_cndmask_b32 v26, v26, v230, vcc
  v_cndmask_b32 v27, v27, v230, s[44:45]
  v_cndmask_b32 v28, v28, v230, s[46:47]
  v_cndmask_b32 v29, v29, v230, s[48:49]
  v_cmp_gt_i32 vcc, 24, v229
  v_cmp_gt_i32 s[44:45], 25, v229
  v_cmp_gt_i32 s[46:47], 26, v229
  v_cmp_gt_i32 s[48:49], 27, v229
  v_cndmask_b32 v30, v30, v230, vcc
  v_cndmask_b32 v31, v31, v230, s[44:45]
  v_cndmask_b32 v32, v32, v230, s[46:47]
  v_cndmask_b32 v33, v33, v230, s[48:49]
  v_cmp_gt_i32 vcc, 32, v229
  v_cmp_gt_i32 s[44:45], 33, v229
  v_cmp_gt_i32 s[46:47], 34, v229
  v_cmp_gt_i32 s[48:49], 35, v229
  v_cndmask_b32 v34, v34, v230, vcc
  v_cndmask_b32 v35, v35, v230, s[44:45]
  v_cndmask_b32 v36, v36, v230, s[46:47]
  v_cndmask_b32 v37, v37, v230, s[48:49]
  v_cmp_gt_i32 vcc, 40, v229
  v_cmp_gt_i32 s[44:45], 41, v229
  v_cmp_gt_i32 s[46:47], 42, v229
  v_cmp_gt_i32 s[48:49], 43, v229
  v_cndmask_b32 v38, v38, v230, vcc
  v_cndmask_b32 v39, v39, v230, s[44:45]
  v_cndmask_b32 v40, v40, v230, s[46:47]
  v_cndmask_b32 v41, v41, v230, s[48:49]
  v_cmp_gt_i32 vcc, 48, v229
  v_cmp_gt_i32 s[44:45], 49, v229
  v_cmp_gt_i32 s[46:47], 50, v229
  v_cmp_gt_i32 s[48:49], 51, v229
  v_cndmask_b32 v42, v42, v230, vcc
  v_cndmask_b32 v43, v43, v230, s[44:45]
  v_cndmask_b32 v44, v44, v230, s[46:47]
  v_cndmask_b32 v45, v45, v230, s[48:49]
  v_cmp_gt_i32 vcc, 56, v229
  v_cmp_gt_i32 s[44:45], 57, v229
  v_cmp_gt_i32 s[46:47], 58, v229
  v_cmp_gt_i32 s[48:49], 59, v229
  v_cndmask_b32 v46, v46, v230, vcc
  v_cndmask_b32 v47, v47, v230, s[44:45]
  v_cndmask_b32 v48, v48, v230, s[46:47]
  v_cndmask_b32 v49, v49, v230, s[48:49]
none_above:
  s_and_b32 s37, s55, 2
  s_cbranch_scc0 none_below
  v_cmp_lt_i32 vcc, 0, v228
  v_cmp_lt_i32 s[44:45], 1, v228
  v_cmp_lt_i32 s[46:47], 2, v228
  v_cmp_lt_i32 s[48:49], 3, v228
  v_cndmask_b32 v18, v18, v230, vcc
  v_cndmask_b32 v19, v19, v230, s[44:45]
  v_cndmask_b32 v20, v20, v230, s[46:47]
  v_cndmask_b32 v21, v21, v230, s[48:49]
  v_cmp_lt_i32 vcc, 8, v228
  v_cmp_lt_i32 s[44:45], 9, v228
  v_cmp_lt_i32 s[46:47], 10, v228
  v_cmp_lt_i32 s[48:49], 11, v228
  v_cndmask_b32 v22, v22, v230, vcc
  v_cndmask_b32 v23, v23, v230, s[44:45]
  v_cndmask_b32 v24, v24, v230, s[46:47]
  v_cndmask_b32 v25, v25, v230, s[48:49]
  v_cmp_lt_i32 vcc, 16, v228
  v_cmp_lt_i32 s[44:45], 17, v228
  v_cmp_lt_i32 s[46:47], 18, v228
  v_cmp_lt_i32 s[48:49], 19, v228
  v_cndmask_b32 v26, v26, v230, vcc
  v_cndmask_b32 v27, v27, v230, s[44:45]
  v_cndmask_b32 v28, v28, v230, s[46:47]
  v_cndmask_b32 v29, v29, v230, s[48:49]
  v_cmp_lt_i32 vcc, 24, v228
  v_cmp_lt_i32 s[44:45], 25, v228
  v_cmp_lt_i32 s[46:47], 26, v228
  v_cmp_lt_i32 s[48:49], 27, v228
  v_cndmask_b32 v30, v30, v230, vcc
  v_cndmask_b32 v31, v31, v230, s[44:45]
  v_cndmask_b32 v32, v32, v230, s[46:47]
  v_cndmask_b32 v33, v33, v230, s[48:49]
  v_cmp_lt_i32 vcc, 32, v228
  v_cmp_lt_i32 s[44:45], 33, v228
  v_cmp_lt_i32 s[46:47], 34, v228
  v_cmp_lt_i32 s[48:49], 35, v228
  v_cndmask_b32 v34, v34, v230, vcc
  v_cndmask_b32 v35, v35, v230, s[44:45]
  v_cndmask_b32 v36, v36, v230, s[46:47]
  v_cndmask_b32 v37, v37, v230, s[48:49]
  v_cmp_lt_i32 vcc, 40, v228
  v_cmp_lt_i32 s[44:45], 41, v228
  v_cmp_lt_i32 s[46:47], 42, v228
  v_cmp_lt_i32 s[48:49], 43, v228
  v_cndmask_b32 v38, v38, v230, vcc
  v_cndmask_b32 v39, v39, v230, s[44:45]
  v_cndmask_b32 v40, v40, v230, s[46:47]
  v_cndmask_b32 v41, v41, v230, s[48:49]
  v_cmp_lt_i32 vcc, 48, v228
  v_cmp_lt_i32 s[44:45], 49, v228
  v_cmp_lt_i32 s[46:47], 50, v228
  v_cmp_lt_i32 s[48:49], 51, v228
  v_cndmask_b32 v42, v42, v230, vcc
  v_cndmask_b32 v43, v43, v230, s[44:45]
  v_cndmask_b32 v44, v44, v230, s[46:47]
  v_cndmask_b32 v45, v45, v230, s[48:49]
  v_cmp_lt_i32 vcc, 56, v228
  v_cmp_lt_i32 s[44:45], 57, v228
  v_cmp_lt_i32 s[46:47], 58, v228
  v_cmp_lt_i32 s[48:49], 59, v228
  v_cndmask_b32 v46, v46, v230, vcc
  v_cndmask_b32 v47, v47, v230, s[44:45]
  v_cndmask_b32 v48, v48, v230, s[46:47]
  v_cndmask_b32 v49, v49, v230, s[48:49]
none_below:
  v_maximum3_f32 v228, v18, v19, v20
  v_maximum3_f32 v228, v228, v21, v22
  v_maximum3_f32 v228, v228, v23, v24
  v_maximum3_f32 v228, v228, v25, v26
  v_maximum3_f32 v228, v228, v27, v28
  v_maximum3_f32 v228, v228, v29, v30
  v_maximum3_f32 v228, v228, v31, v32
  v_maximum3_f32 v228, v228, v33, v34
  v_maximum3_f32 v228, v228, v35, v36
  v_maximum3_f32 v228, v228, v37, v38
  v_maximum3_f32 v228, v228, v39, v40
  v_maximum3_f32 v228, v228, v41, v42
  v_maximum3_f32 v228, v228, v43, v44
  v_maximum3_f32 v228, v228, v45, v46
  v_maximum3_f32 v228, v228, v47, v48
  v_maximum3_f32 v228, v228, v49, v49
  v_mov_b32 v229, v228
  v_add_f32 v230, 0x3e800000, v219
  s_mov_b32 s59, 1
  v_permlane32_swap_b32 v229, v228
  v_maximum3_f32 v220, v228, v229, v229
  v_mul_f32 v228, s24, v220
  v_cmp_nle_f32 vcc, v228, v230
  v_sub_f32 v229, v228, v219
  v_ceil_f32 v229, v229
  v_max_f32 v229, 0xc2700000, v229
  v_min_f32 v229, 0x42700000, v229
  v_add_f32 v226, v219, v229
  s_cbranch_vccnz move_anchor_special
anchored_special:
  v_mul_f32 v226, 0x41000000, v226
  v_sub_f32 v226, 0x42fc0000, v226
  v_fma_f32 v228, v220, s26, v226
  v_cmp_lt_f32 vcc, 0x42fd0000, v228
  v_fma_f32 v18, v18, s26, v226
  v_fma_f32 v19, v19, s26, v226
  v_fma_f32 v20, v20, s26, v226
  v_fma_f32 v21, v21, s26, v226
  v_fma_f32 v22, v22, s26, v226
  v_fma_f32 v23, v23, s26, v226
  v_fma_f32 v24, v24, s26, v226
  v_fma_f32 v25, v25, s26, v226
  v_fma_f32 v26, v26, s26, v226
  v_fma_f32 v27, v27, s26, v226
  v_fma_f32 v28, v28, s26, v226
  v_fma_f32 v29, v29, s26, v226
  v_fma_f32 v30, v30, s26, v226
  v_fma_f32 v31, v31, s26, v226
  v_fma_f32 v32, v32, s26, v226
  v_fma_f32 v33, v33, s26, v226
  v_fma_f32 v34, v34, s26, v226
  v_fma_f32 v35, v35, s26, v226
  v_fma_f32 v36, v36, s26, v226
  v_fma_f32 v37, v37, s26, v226
  v_fma_f32 v38, v38, s26, v226
  v_fma_f32 v39, v39, s26, v226
  v_fma_f32 v40, v40, s26, v226
  v_fma_f32 v41, v41, s26, v226
  v_fma_f32 v42, v42, s26, v226
  v_fma_f32 v43, v43, s26, v226
  v_fma_f32 v44, v44, s26, v226
  v_fma_f32 v45, v45, s26, v226
  v_fma_f32 v46, v46, s26, v226
  v_fma_f32 v47, v47, s26, v226
  v_fma_f32 v48, v48, s26, v226
  v_fma_f32 v49, v49, s26, v226
  s_cbranch_vccnz beyond_special
in_range_special:
  v_cvt_pk_u8_f32 v194, v18, 0, 0
  v_cvt_pk_u8_f32 v194, v19, 1, v194
  v_cvt_pk_u8_f32 v194, v20, 2, v194
  v_cvt_pk_u8_f32 v194, v21, 3, v194
  v_cvt_pk_u8_f32 v195, v22, 0, 0
  v_cvt_pk_u8_f32 v195, v23, 1, v195
  v_cvt_pk_u8_f32 v195, v24, 2, v195
  v_cvt_pk_u8_f32 v195, v25, 3, v195
  v_cvt_pk_u8_f32 v196, v26, 0, 0
  v_cvt_pk_u8_f32 v196, v27, 1, v196
  v_cvt_pk_u8_f32 v196, v28, 2, v196
  v_cvt_pk_u8_f32 v196, v29, 3, v196
  v_cvt_pk_u8_f32 v197, v30, 0, 0
  v_cvt_pk_u8_f32 v197, v31, 1, v197
  v_cvt_pk_u8_f32 v197, v32, 2, v197
  v_cvt_pk_u8_f32 v197, v33, 3, v197
  v_cvt_pk_u8_f32 v198, v34, 0, 0
  v_cvt_pk_u8_f32 v198, v35, 1, v198
  v_cvt_pk_u8_f32 v198, v36, 2, v198
  v_cvt_pk_u8_f32 v198, v37, 3, v198
  v_cvt_pk_u8_f32 v199, v38, 0, 0
  v_cvt_pk_u8_f32 v199, v39, 1, v199
  v_cvt_pk_u8_f32 v199, v40, 2, v199
  v_cvt_pk_u8_f32 v199, v41, 3, v199
  v_cvt_pk_u8_f32 v200, v42, 0, 0
  v_cvt_pk_u8_f32 v200, v43, 1, v200
  v_cvt_pk_u8_f32 v200, v44, 2, v200
  v_cvt_pk_u8_f32 v200, v45, 3, v200
  v_cvt_pk_u8_f32 v201, v46, 0, 0
  v_cvt_pk_u8_f32 v201, v47, 1, v201
  v_cvt_pk_u8_f32 v201, v48, 2, v201
  v_cvt_pk_u8_f32 v201, v49, 3, v201
  v_cvt_i32_f32 v229, v229
  v_add_u32 v223, 127, v229
  s_mov_b32 s60, s43
  s_cmp_lg_u32 s55, 0
  s_cselect_b32 s37, 4, 0
  s_or_b32 s59, s59, s37
  s_branch probabilities_ready
nan:
  s_lshl_b32 s37, s60, 6
  v_lshrrev_b32 v230, 5, v0
  v_lshlrev_b32 v230, 2, v230
  v_add_u32 v230, s37, v230
  v_sub_u32 v228, v222, v230
  v_sub_u32 v229, v221, v230
  v_mov_b32 v230, 0
  v_cmp_gt_i32 vcc, 0, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 0, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v130, v231, 0, v230
  v_cmp_gt_i32 vcc, 1, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 1, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v130, v231, 8, v130
  v_cmp_gt_i32 vcc, 2, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 2, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v130, v231, 16, v130
  v_cmp_gt_i32 vcc, 3, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 3, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v130, v231, 24, v130
  v_cmp_gt_i32 vcc, 8, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 8, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v131, v231, 0, v230
  v_cmp_gt_i32 vcc, 9, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 9, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v131, v231, 8, v131
  v_cmp_gt_i32 vcc, 10, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 10, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v131, v231, 16, v131
  v_cmp_gt_i32 vcc, 11, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 11, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v131, v231, 24, v131
  v_cmp_gt_i32 vcc, 16, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 16, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v132, v231, 0, v230
  v_cmp_gt_i32 vcc, 17, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 17, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v132, v231, 8, v132
  v_cmp_gt_i32 vcc, 18, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 18, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v132, v231, 16, v132
  v_cmp_gt_i32 vcc, 19, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 19, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v132, v231, 24, v132
  v_cmp_gt_i32 vcc, 24, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 24, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v133, v231, 0, v230
  v_cmp_gt_i32 vcc, 25, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 25, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v133, v231, 8, v133
  v_cmp_gt_i32 vcc, 26, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 26, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v133, v231, 16, v133
  v_cmp_gt_i32 vcc, 27, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 27, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v133, v231, 24, v133
  v_cmp_gt_i32 vcc, 32, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 32, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v134, v231, 0, v230
  v_cmp_gt_i32 vcc, 33, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 33, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v134, v231, 8, v134
  v_cmp_gt_i32 vcc, 34, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 34, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v134, v231, 16, v134
  v_cmp_gt_i32 vcc, 35, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 35, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v134, v231, 24, v134
  v_cmp_gt_i32 vcc, 40, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 40, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v135, v231, 0, v230
  v_cmp_gt_i32 vcc, 41, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 41, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v135, v231, 8, v135
  v_cmp_gt_i32 vcc, 42, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 42, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v135, v231, 16, v135
  v_cmp_gt_i32 vcc, 43, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 43, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v135, v231, 24, v135
  v_cmp_gt_i32 vcc, 48, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 48, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v136, v231, 0, v230
  v_cmp_gt_i32 vcc, 49, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 49, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v136, v231, 8, v136
  v_cmp_gt_i32 vcc, 50, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 50, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v136, v231, 16, v136
  v_cmp_gt_i32 vcc, 51, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 51, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v136, v231, 24, v136
  v_cmp_gt_i32 vcc, 56, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 56, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v137, v231, 0, v230
  v_cmp_gt_i32 vcc, 57, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 57, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v137, v231, 8, v137
  v_cmp_gt_i32 vcc, 58, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 58, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v137, v231, 16, v137
  v_cmp_gt_i32 vcc, 59, v229
  s_nop 1
  v_cndmask_b32 v231, 56, v230, vcc
  v_cmp_lt_i32 vcc, 59, v228
  s_nop 1
  v_cndmask_b32 v231, v231, v230, vcc
  v_lshl_or_b32 v137, v231, 24, v137
  v_mov_b32 v228, 0x7fc00000
  v_and_b32 v229, 2139062143, v162
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v138, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v138, v138, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v138, v138, v230
  v_and_b32 v229, 2139062143, v162
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v162, v229, 0, v162
  v_and_b32 v229, 2139062143, v163
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v139, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v139, v139, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v139, v139, v230
  v_and_b32 v229, 2139062143, v163
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v163, v229, 0, v163
  v_and_b32 v229, 2139062143, v164
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v140, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v140, v140, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v140, v140, v230
  v_and_b32 v229, 2139062143, v164
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v164, v229, 0, v164
  v_and_b32 v229, 2139062143, v165
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v141, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v141, v141, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v141, v141, v230
  v_and_b32 v229, 2139062143, v165
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v165, v229, 0, v165
  v_and_b32 v229, 2139062143, v166
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v142, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v142, v142, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v142, v142, v230
  v_and_b32 v229, 2139062143, v166
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v166, v229, 0, v166
  v_and_b32 v229, 2139062143, v167
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v143, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v143, v143, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v143, v143, v230
  v_and_b32 v229, 2139062143, v167
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v167, v229, 0, v167
  v_and_b32 v229, 2139062143, v168
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v144, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v144, v144, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v144, v144, v230
  v_and_b32 v229, 2139062143, v168
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v168, v229, 0, v168
  v_and_b32 v229, 2139062143, v169
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v145, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v145, v145, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v145, v145, v230
  v_and_b32 v229, 2139062143, v169
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v169, v229, 0, v169
  v_mfma_f32_32x32x64_f8f6f4 v[146:161], v[138:145], v[130:137], 0
  s_nop 7
  s_nop 7
  s_nop 3
  v_cmp_lt_f32 vcc, 0, v146
  s_nop 1
  v_cndmask_b32 v50, v50, v228, vcc
  v_cmp_lt_f32 vcc, 0, v147
  s_nop 1
  v_cndmask_b32 v51, v51, v228, vcc
  v_cmp_lt_f32 vcc, 0, v148
  s_nop 1
  v_cndmask_b32 v52, v52, v228, vcc
  v_cmp_lt_f32 vcc, 0, v149
  s_nop 1
  v_cndmask_b32 v53, v53, v228, vcc
  v_cmp_lt_f32 vcc, 0, v150
  s_nop 1
  v_cndmask_b32 v54, v54, v228, vcc
  v_cmp_lt_f32 vcc, 0, v151
  s_nop 1
  v_cndmask_b32 v55, v55, v228, vcc
  v_cmp_lt_f32 vcc, 0, v152
  s_nop 1
  v_cndmask_b32 v56, v56, v228, vcc
  v_cmp_lt_f32 vcc, 0, v153
  s_nop 1
  v_cndmask_b32 v57, v57, v228, vcc
  v_cmp_lt_f32 vcc, 0, v154
  s_nop 1
  v_cndmask_b32 v58, v58, v228, vcc
  v_cmp_lt_f32 vcc, 0, v155
  s_nop 1
  v_cndmask_b32 v59, v59, v228, vcc
  v_cmp_lt_f32 vcc, 0, v156
  s_nop 1
  v_cndmask_b32 v60, v60, v228, vcc
  v_cmp_lt_f32 vcc, 0, v157
  s_nop 1
  v_cndmask_b32 v61, v61, v228, vcc
  v_cmp_lt_f32 vcc, 0, v158
  s_nop 1
  v_cndmask_b32 v62, v62, v228, vcc
  v_cmp_lt_f32 vcc, 0, v159
  s_nop 1
  v_cndmask_b32 v63, v63, v228, vcc
  v_cmp_lt_f32 vcc, 0, v160
  s_nop 1
  v_cndmask_b32 v64, v64, v228, vcc
  v_cmp_lt_f32 vcc, 0, v161
  s_nop 1
  v_cndmask_b32 v65, v65, v228, vcc
  v_and_b32 v229, 2139062143, v170
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v138, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v138, v138, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v138, v138, v230
  v_and_b32 v229, 2139062143, v170
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v170, v229, 0, v170
  v_and_b32 v229, 2139062143, v171
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v139, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v139, v139, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v139, v139, v230
  v_and_b32 v229, 2139062143, v171
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v171, v229, 0, v171
  v_and_b32 v229, 2139062143, v172
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v140, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v140, v140, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v140, v140, v230
  v_and_b32 v229, 2139062143, v172
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v172, v229, 0, v172
  v_and_b32 v229, 2139062143, v173
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v141, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v141, v141, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v141, v141, v230
  v_and_b32 v229, 2139062143, v173
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v173, v229, 0, v173
  v_and_b32 v229, 2139062143, v174
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v142, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v142, v142, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v142, v142, v230
  v_and_b32 v229, 2139062143, v174
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v174, v229, 0, v174
  v_and_b32 v229, 2139062143, v175
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v143, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v143, v143, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v143, v143, v230
  v_and_b32 v229, 2139062143, v175
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v175, v229, 0, v175
  v_and_b32 v229, 2139062143, v176
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v144, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v144, v144, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v144, v144, v230
  v_and_b32 v229, 2139062143, v176
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v176, v229, 0, v176
  v_and_b32 v229, 2139062143, v177
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v145, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v145, v145, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v145, v145, v230
  v_and_b32 v229, 2139062143, v177
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v177, v229, 0, v177
  v_mfma_f32_32x32x64_f8f6f4 v[146:161], v[138:145], v[130:137], 0
  s_nop 7
  s_nop 7
  s_nop 3
  v_cmp_lt_f32 vcc, 0, v146
  s_nop 1
  v_cndmask_b32 v66, v66, v228, vcc
  v_cmp_lt_f32 vcc, 0, v147
  s_nop 1
  v_cndmask_b32 v67, v67, v228, vcc
  v_cmp_lt_f32 vcc, 0, v148
  s_nop 1
  v_cndmask_b32 v68, v68, v228, vcc
  v_cmp_lt_f32 vcc, 0, v149
  s_nop 1
  v_cndmask_b32 v69, v69, v228, vcc
  v_cmp_lt_f32 vcc, 0, v150
  s_nop 1
  v_cndmask_b32 v70, v70, v228, vcc
  v_cmp_lt_f32 vcc, 0, v151
  s_nop 1
  v_cndmask_b32 v71, v71, v228, vcc
  v_cmp_lt_f32 vcc, 0, v152
  s_nop 1
  v_cndmask_b32 v72, v72, v228, vcc
  v_cmp_lt_f32 vcc, 0, v153
  s_nop 1
  v_cndmask_b32 v73, v73, v228, vcc
  v_cmp_lt_f32 vcc, 0, v154
  s_nop 1
  v_cndmask_b32 v74, v74, v228, vcc
  v_cmp_lt_f32 vcc, 0, v155
  s_nop 1
  v_cndmask_b32 v75, v75, v228, vcc
  v_cmp_lt_f32 vcc, 0, v156
  s_nop 1
  v_cndmask_b32 v76, v76, v228, vcc
  v_cmp_lt_f32 vcc, 0, v157
  s_nop 1
  v_cndmask_b32 v77, v77, v228, vcc
  v_cmp_lt_f32 vcc, 0, v158
  s_nop 1
  v_cndmask_b32 v78, v78, v228, vcc
  v_cmp_lt_f32 vcc, 0, v159
  s_nop 1
  v_cndmask_b32 v79, v79, v228, vcc
  v_cmp_lt_f32 vcc, 0, v160
  s_nop 1
  v_cndmask_b32 v80, v80, v228, vcc
  v_cmp_lt_f32 vcc, 0, v161
  s_nop 1
  v_cndmask_b32 v81, v81, v228, vcc
  v_and_b32 v229, 2139062143, v178
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v138, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v138, v138, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v138, v138, v230
  v_and_b32 v229, 2139062143, v178
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v178, v229, 0, v178
  v_and_b32 v229, 2139062143, v179
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v139, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v139, v139, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v139, v139, v230
  v_and_b32 v229, 2139062143, v179
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v179, v229, 0, v179
  v_and_b32 v229, 2139062143, v180
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v140, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v140, v140, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v140, v140, v230
  v_and_b32 v229, 2139062143, v180
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v180, v229, 0, v180
  v_and_b32 v229, 2139062143, v181
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v141, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v141, v141, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v141, v141, v230
  v_and_b32 v229, 2139062143, v181
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v181, v229, 0, v181
  v_and_b32 v229, 2139062143, v182
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v142, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v142, v142, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v142, v142, v230
  v_and_b32 v229, 2139062143, v182
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v182, v229, 0, v182
  v_and_b32 v229, 2139062143, v183
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v143, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v143, v143, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v143, v143, v230
  v_and_b32 v229, 2139062143, v183
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v183, v229, 0, v183
  v_and_b32 v229, 2139062143, v184
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v144, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v144, v144, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v144, v144, v230
  v_and_b32 v229, 2139062143, v184
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v184, v229, 0, v184
  v_and_b32 v229, 2139062143, v185
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v145, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v145, v145, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v145, v145, v230
  v_and_b32 v229, 2139062143, v185
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v185, v229, 0, v185
  v_mfma_f32_32x32x64_f8f6f4 v[146:161], v[138:145], v[130:137], 0
  s_nop 7
  s_nop 7
  s_nop 3
  v_cmp_lt_f32 vcc, 0, v146
  s_nop 1
  v_cndmask_b32 v82, v82, v228, vcc
  v_cmp_lt_f32 vcc, 0, v147
  s_nop 1
  v_cndmask_b32 v83, v83, v228, vcc
  v_cmp_lt_f32 vcc, 0, v148
  s_nop 1
  v_cndmask_b32 v84, v84, v228, vcc
  v_cmp_lt_f32 vcc, 0, v149
  s_nop 1
  v_cndmask_b32 v85, v85, v228, vcc
  v_cmp_lt_f32 vcc, 0, v150
  s_nop 1
  v_cndmask_b32 v86, v86, v228, vcc
  v_cmp_lt_f32 vcc, 0, v151
  s_nop 1
  v_cndmask_b32 v87, v87, v228, vcc
  v_cmp_lt_f32 vcc, 0, v152
  s_nop 1
  v_cndmask_b32 v88, v88, v228, vcc
  v_cmp_lt_f32 vcc, 0, v153
  s_nop 1
  v_cndmask_b32 v89, v89, v228, vcc
  v_cmp_lt_f32 vcc, 0, v154
  s_nop 1
  v_cndmask_b32 v90, v90, v228, vcc
  v_cmp_lt_f32 vcc, 0, v155
  s_nop 1
  v_cndmask_b32 v91, v91, v228, vcc
  v_cmp_lt_f32 vcc, 0, v156
  s_nop 1
  v_cndmask_b32 v92, v92, v228, vcc
  v_cmp_lt_f32 vcc, 0, v157
  s_nop 1
  v_cndmask_b32 v93, v93, v228, vcc
  v_cmp_lt_f32 vcc, 0, v158
  s_nop 1
  v_cndmask_b32 v94, v94, v228, vcc
  v_cmp_lt_f32 vcc, 0, v159
  s_nop 1
  v_cndmask_b32 v95, v95, v228, vcc
  v_cmp_lt_f32 vcc, 0, v160
  s_nop 1
  v_cndmask_b32 v96, v96, v228, vcc
  v_cmp_lt_f32 vcc, 0, v161
  s_nop 1
  v_cndmask_b32 v97, v97, v228, vcc
  v_and_b32 v229, 2139062143, v186
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v138, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v138, v138, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v138, v138, v230
  v_and_b32 v229, 2139062143, v186
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v186, v229, 0, v186
  v_and_b32 v229, 2139062143, v187
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v139, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v139, v139, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v139, v139, v230
  v_and_b32 v229, 2139062143, v187
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v187, v229, 0, v187
  v_and_b32 v229, 2139062143, v188
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v140, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v140, v140, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v140, v140, v230
  v_and_b32 v229, 2139062143, v188
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v188, v229, 0, v188
  v_and_b32 v229, 2139062143, v189
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v141, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v141, v141, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v141, v141, v230
  v_and_b32 v229, 2139062143, v189
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v189, v229, 0, v189
  v_and_b32 v229, 2139062143, v190
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v142, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v142, v142, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v142, v142, v230
  v_and_b32 v229, 2139062143, v190
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v190, v229, 0, v190
  v_and_b32 v229, 2139062143, v191
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v143, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v143, v143, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v143, v143, v230
  v_and_b32 v229, 2139062143, v191
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v191, v229, 0, v191
  v_and_b32 v229, 2139062143, v192
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v144, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v144, v144, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v144, v144, v230
  v_and_b32 v229, 2139062143, v192
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v192, v229, 0, v192
  v_and_b32 v229, 2139062143, v193
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v145, 2, v229
  v_lshrrev_b32 v230, 3, v229
  v_or_b32 v145, v145, v230
  v_lshrrev_b32 v230, 4, v229
  v_or_b32 v145, v145, v230
  v_and_b32 v229, 2139062143, v193
  v_add_u32 v229, 16843009, v229
  v_and_b32 v229, 2155905152, v229
  v_lshrrev_b32 v230, 7, v229
  v_sub_u32 v230, v229, v230
  v_or_b32 v229, v230, v229
  v_bfi_b32 v193, v229, 0, v193
  v_mfma_f32_32x32x64_f8f6f4 v[146:161], v[138:145], v[130:137], 0
  s_nop 7
  s_nop 7
  s_nop 3
  v_cmp_lt_f32 vcc, 0, v146
  s_nop 1
  v_cndmask_b32 v98, v98, v228, vcc
  v_cmp_lt_f32 vcc, 0, v147
  s_nop 1
  v_cndmask_b32 v99, v99, v228, vcc
  v_cmp_lt_f32 vcc, 0, v148
  s_nop 1
  v_cndmask_b32 v100, v100, v228, vcc
  v_cmp_lt_f32 vcc, 0, v149
  s_nop 1
  v_cndmask_b32 v101, v101, v228, vcc
  v_cmp_lt_f32 vcc, 0, v150
  s_nop 1
  v_cndmask_b32 v102, v102, v228, vcc
  v_cmp_lt_f32 vcc, 0, v151
  s_nop 1
  v_cndmask_b32 v103, v103, v228, vcc
  v_cmp_lt_f32 vcc, 0, v152
  s_nop 1
  v_cndmask_b32 v104, v104, v228, vcc
  v_cmp_lt_f32 vcc, 0, v153
  s_nop 1
  v_cndmask_b32 v105, v105, v228, vcc
  v_cmp_lt_f32 vcc, 0, v154
  s_nop 1
  v_cndmask_b32 v106, v106, v228, vcc
  v_cmp_lt_f32 vcc, 0, v155
  s_nop 1
  v_cndmask_b32 v107, v107, v228, vcc
  v_cmp_lt_f32 vcc, 0, v156
  s_nop 1
  v_cndmask_b32 v108, v108, v228, vcc
  v_cmp_lt_f32 vcc, 0, v157
  s_nop 1
  v_cndmask_b32 v109, v109, v228, vcc
  v_cmp_lt_f32 vcc, 0, v158
  s_nop 1
  v_cndmask_b32 v110, v110, v228, vcc
  v_cmp_lt_f32 vcc, 0, v159
  s_nop 1
  v_cndmask_b32 v111, v111, v228, vcc
  v_cmp_lt_f32 vcc, 0, v160
  s_nop 1
  v_cndmask_b32 v112, v112, v228, vcc
  v_cmp_lt_f32 vcc, 0, v161
  s_nop 1
  v_cndmask_b32 v113, v113, v228, vcc
  s_branch no_nan
move_anchor_special:
  v_sub_f32 v230, v219, v228
  v_exp_f32 v230, v230
  v_mov_b32 v231, 1.0
  v_cndmask_b32 v230, v231, v230, vcc
  v_cndmask_b32 v219, v219, v228, vcc
  v_pk_mul_f32 v[50:51], v[50:51], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[52:53], v[52:53], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[54:55], v[54:55], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[56:57], v[56:57], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[58:59], v[58:59], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[60:61], v[60:61], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[62:63], v[62:63], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[64:65], v[64:65], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[66:67], v[66:67], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[68:69], v[68:69], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[70:71], v[70:71], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[72:73], v[72:73], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[74:75], v[74:75], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[76:77], v[76:77], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[78:79], v[78:79], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[80:81], v[80:81], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[82:83], v[82:83], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[84:85], v[84:85], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[86:87], v[86:87], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[88:89], v[88:89], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[90:91], v[90:91], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[92:93], v[92:93], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[94:95], v[94:95], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[96:97], v[96:97], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[98:99], v[98:99], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[100:101], v[100:101], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[102:103], v[102:103], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[104:105], v[104:105], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[106:107], v[106:107], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[108:109], v[108:109], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[110:111], v[110:111], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[112:113], v[112:113], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[114:115], v[114:115], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[116:117], v[116:117], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[118:119], v[118:119], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[120:121], v[120:121], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[122:123], v[122:123], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[124:125], v[124:125], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[126:127], v[126:127], v[230:231] op_sel_hi:[1,0]
  v_pk_mul_f32 v[128:129], v[128:129], v[230:231] op_sel_hi:[1,0]
  v_sub_f32 v229, v228, v219
  v_ceil_f32 v229, v229
  v_max_f32 v229, 0xc2700000, v229
  v_min_f32 v229, 0x42700000, v229
  v_add_f32 v226, v219, v229
  s_branch anchored_special
beyond_special:
  v_min_f32 v18, 0x42fc0000, v18
  v_min_f32 v19, 0x42fc0000, v19
  v_min_f32 v20, 0x42fc0000, v20
  v_min_f32 v21, 0x42fc0000, v21
  v_min_f32 v22, 0x42fc0000, v22
  v_min_f32 v23, 0x42fc0000, v23
  v_min_f32 v24, 0x42fc0000, v24
  v_min_f32 v25, 0x42fc0000, v25
  v_min_f32 v26, 0x42fc0000, v26
  v_min_f32 v27, 0x42fc0000, v27
  v_min_f32 v28, 0x42fc0000, v28
  v_min_f32 v29, 0x42fc0000, v29
  v_min_f32 v30, 0x42fc0000, v30
  v_min_f32 v31, 0x42fc0000, v31
  v_min_f32 v32, 0x42fc0000, v32
  v_min_f32 v33, 0x42fc0000, v33
  v_min_f32 v34, 0x42fc0000, v34
  v_min_f32 v35, 0x42fc0000, v35
  v_min_f32 v36, 0x42fc0000, v36
  v_min_f32 v37, 0x42fc0000, v37
  v_min_f32 v38, 0x42fc0000, v38
  v_min_f32 v39, 0x42fc0000, v39
  v_min_f32 v40, 0x42fc0000, v40
  v_min_f32 v41, 0x42fc0000, v41
  v_min_f32 v42, 0x42fc0000, v42
  v_min_f32 v43, 0x42fc0000, v43
  v_min_f32 v44, 0x42fc0000, v44
  v_min_f32 v45, 0x42fc0000, v45
  v_min_f32 v46, 0x42fc0000, v46
  v_min_f32 v47, 0x42fc0000, v47
  v_min_f32 v48, 0x42fc0000, v48
  v_min_f32 v49, 0x42fc0000, v49
  s_branch in_range_special
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
  s_nop 0
.Lend:
.size fp8_prefill_d128_none_f32, .Lend-fp8_prefill_d128_none_f32
.rodata
.p2align 6
.amdhsa_kernel fp8_prefill_d128_none_f32
  .amdhsa_group_segment_fixed_size 131072
  .amdhsa_kernarg_size 232
  .amdhsa_user_sgpr_count 2
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_system_sgpr_workgroup_id_x 1
  .amdhsa_system_sgpr_workgroup_id_y 1
  .amdhsa_system_sgpr_workgroup_id_z 1
  .amdhsa_system_vgpr_workitem_id 0
  .amdhsa_next_free_vgpr 232
  .amdhsa_accum_offset 232
  .amdhsa_next_free_sgpr 97
  .amdhsa_float_denorm_mode_32 3
  .amdhsa_dx10_clamp 0
  .amdhsa_ieee_mode 0
  .amdhsa_fp16_overflow 1
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - .name: fp8_prefill_d128_none_f32
    .symbol: fp8_prefill_d128_none_f32.kd
    .kernarg_segment_size: 232
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 131072
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 97
    .vgpr_count: 232
    .agpr_count: 0
    .max_flat_workgroup_size: 512
    .args:
      - {.name: query, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: key, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: value, .offset: 16, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: q_scale, .offset: 24, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: k_scale, .offset: 32, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: v_scale, .offset: 40, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: key_range, .offset: 48, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: q_batch, .offset: 56, .size: 8, .value_kind: by_value}
      - {.name: q_head, .offset: 64, .size: 8, .value_kind: by_value}
      - {.name: k_batch, .offset: 72, .size: 8, .value_kind: by_value}
      - {.name: k_head, .offset: 80, .size: 8, .value_kind: by_value}
      - {.name: v_batch, .offset: 88, .size: 8, .value_kind: by_value}
      - {.name: v_head, .offset: 96, .size: 8, .value_kind: by_value}
      - {.name: q_row, .offset: 104, .size: 4, .value_kind: by_value}
      - {.name: k_row, .offset: 108, .size: 4, .value_kind: by_value}
      - {.name: v_row, .offset: 112, .size: 4, .value_kind: by_value}
      - {.name: q_scale_batch, .offset: 116, .size: 4, .value_kind: by_value}
      - {.name: q_scale_head, .offset: 120, .size: 4, .value_kind: by_value}
      - {.name: k_scale_batch, .offset: 124, .size: 4, .value_kind: by_value}
      - {.name: k_scale_head, .offset: 128, .size: 4, .value_kind: by_value}
      - {.name: v_scale_batch, .offset: 132, .size: 4, .value_kind: by_value}
      - {.name: v_scale_head, .offset: 136, .size: 4, .value_kind: by_value}
      - {.name: queries, .offset: 140, .size: 4, .value_kind: by_value}
      - {.name: keys, .offset: 144, .size: 4, .value_kind: by_value}
      - {.name: group_reciprocal, .offset: 148, .size: 4, .value_kind: by_value}
      - {.name: causal, .offset: 152, .size: 4, .value_kind: by_value}
      - {.name: diagonal, .offset: 156, .size: 4, .value_kind: by_value}
      - {.name: window_left, .offset: 160, .size: 4, .value_kind: by_value}
      - {.name: scale, .offset: 164, .size: 4, .value_kind: by_value}
      - {.name: output, .offset: 168, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: lse, .offset: 176, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: sinks, .offset: 184, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: o_batch, .offset: 192, .size: 8, .value_kind: by_value}
      - {.name: o_head, .offset: 200, .size: 8, .value_kind: by_value}
      - {.name: lse_batch, .offset: 208, .size: 8, .value_kind: by_value}
      - {.name: lse_head, .offset: 216, .size: 8, .value_kind: by_value}
      - {.name: o_row, .offset: 224, .size: 4, .value_kind: by_value}
      - {.name: o_queries, .offset: 228, .size: 4, .value_kind: by_value}
...
.end_amdgpu_metadata

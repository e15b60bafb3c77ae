; ModuleID = 'llvm-link'
source_filename = "llvm-link"
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

%"core::fmt::rt::Argument<'_>" = type { %"core::fmt::rt::ArgumentType<'_>" }
%"core::fmt::rt::ArgumentType<'_>" = type { ptr, [1 x i64] }

@vtable.0 = private unnamed_addr constant <{ [24 x i8], ptr }> <{ [24 x i8] c"\00\00\00\00\00\00\00\00\08\00\00\00\00\00\00\00\08\00\00\00\00\00\00\00", ptr @_RNvXs1g_NtCs407BcpMJGyA_4core3fmtRmNtB6_5Debug3fmtCs81wYgPWXIw3_6panics }>, align 8
@alloc_e6bb89186cf82ca10bdcb59ed5006cfc = private unnamed_addr constant [14 x i8] c"seven is wrong", align 1
@alloc_05236de32237de90edff315decba339b = private unnamed_addr constant [10 x i8] c"panics.rs\00", align 1
@alloc_ab61a20ac1c0549f812bba1f6bc6abce = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_05236de32237de90edff315decba339b, [16 x i8] c"\09\00\00\00\00\00\00\00\14\00\00\00\05\00\00\00" }>, align 8
@alloc_93c5ee77442bc232d64f18ff4f8ccb09 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_05236de32237de90edff315decba339b, [16 x i8] c"\09\00\00\00\00\00\00\00\15\00\00\00\10\00\00\00" }>, align 8
@alloc_bc6c24833cc57d8ab679f3fbe0b0ac4a = private unnamed_addr constant [4 x i8] c"\03\00\00\00", align 4
@anon.8def696cabf673b79b59bcc8b126a66c.0 = private unnamed_addr constant <{ [8 x i8], [8 x i8] }> <{ [8 x i8] zeroinitializer, [8 x i8] undef }>, align 8
@alloc_be25cf4eac1679464f2f9e11957403c4 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_05236de32237de90edff315decba339b, [16 x i8] c"\09\00\00\00\00\00\00\00\15\00\00\00\05\00\00\00" }>, align 8
@alloc_37ce9c8c81c9ac0428fe8cf942abc9a4 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_05236de32237de90edff315decba339b, [16 x i8] c"\09\00\00\00\00\00\00\00\16\00\00\00\0C\00\00\00" }>, align 8
@anon.8def696cabf673b79b59bcc8b126a66c.1 = private unnamed_addr constant <{ [4 x i8], [4 x i8] }> <{ [4 x i8] zeroinitializer, [4 x i8] undef }>, align 4
@alloc_50d91a0df53a0998ac9b98c483fd773f = private unnamed_addr constant [9 x i8] c"too large", align 1
@alloc_af25832a210bc536f8381b4a3e4c0a31 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_05236de32237de90edff315decba339b, [16 x i8] c"\09\00\00\00\00\00\00\00\16\00\00\00 \00\00\00" }>, align 8
@alloc_98a0f15209c5733b9ab9acdc5e777570 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_05236de32237de90edff315decba339b, [16 x i8] c"\09\00\00\00\00\00\00\00\16\00\00\006\00\00\00" }>, align 8
@alloc_7287e55ba2892e9b1574aeee784619fe = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_05236de32237de90edff315decba339b, [16 x i8] c"\09\00\00\00\00\00\00\00\16\00\00\00\05\00\00\00" }>, align 8
@alloc_56b3823ccd078a8da2d8a751f7b3b841 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_05236de32237de90edff315decba339b, [16 x i8] c"\09\00\00\00\00\00\00\00\17\00\00\00\08\00\00\00" }>, align 8
@alloc_418a0d93cc3ef838e0b36b6161c9a7f7 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_05236de32237de90edff315decba339b, [16 x i8] c"\09\00\00\00\00\00\00\00\18\00\00\00#\00\00\00" }>, align 8
@alloc_70510dff9e61ed364f57cc85cdfdcc90 = private unnamed_addr constant [16 x i8] c"\0Dthe value is \C0\00", align 1
@alloc_3ab835e5cd903f9b90d859e2aef1686c = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_05236de32237de90edff315decba339b, [16 x i8] c"\09\00\00\00\00\00\00\00\18\00\00\00\09\00\00\00" }>, align 8
@alloc_63575c3e000160dea70bdb05edf17349 = private unnamed_addr constant [3 x i8] c"one", align 1
@alloc_9f996ed252a71d524cc343cbe0ec14ef = private unnamed_addr constant [11 x i8] c"two or more", align 1
@alloc_3aa8340a4a518e8670d9e332fc133fee = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_05236de32237de90edff315decba339b, [16 x i8] c"\09\00\00\00\00\00\00\00\1B\00\00\00 \00\00\00" }>, align 8
@curium.meta.panics = constant [88 x i8] c"\01\00\00\00\00\00\00\00@\00\00\00\01\00\00\00\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\01\00\00\00p\00\00\00\08\00\00\00\08\00\00\00v\00\00\00\08\00\00\00\08\00\00\00_\00\00\00\00\00\00\00\00\00\00\00", section ".curium.kernel", align 4

; Function Attrs: cold convergent minsize noinline noreturn nounwind optsize
define void @_RINvNtCs407BcpMJGyA_4core9panicking13assert_failedmmECs81wYgPWXIw3_6panics(i8 noundef range(i8 0, 3) %kind, ptr noalias nofree noundef readonly align 4 captures(address, read_provenance) dereferenceable(4) %0, ptr noalias nofree noundef readonly align 4 captures(address, read_provenance) dereferenceable(4) %1, ptr noundef %args.0, ptr %args.1, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) %2) unnamed_addr #0 {
start:
  %right = alloca [8 x i8], align 8
  %left = alloca [8 x i8], align 8
  store ptr %0, ptr %left, align 8
  store ptr %1, ptr %right, align 8
  call void @_RNvNtCs407BcpMJGyA_4core9panicking19assert_failed_inner(i8 noundef %kind, ptr noundef nonnull %left, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(32) @vtable.0, ptr noundef nonnull %right, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(32) @vtable.0, ptr noundef %args.0, ptr %args.1, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) %2) #9
  unreachable
}

; Function Attrs: cold convergent minsize noinline noreturn nounwind optsize
declare void @_RNvNtCs407BcpMJGyA_4core9panicking19assert_failed_inner(i8 noundef range(i8 0, 3), ptr noundef nonnull, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(32), ptr noundef nonnull, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(32), ptr noundef, ptr, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24)) unnamed_addr #0

; Function Attrs: convergent nounwind
define internal noundef zeroext i1 @_RNvXs1g_NtCs407BcpMJGyA_4core3fmtRmNtB6_5Debug3fmtCs81wYgPWXIw3_6panics(ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(8) %self, ptr noalias nofree noundef align 8 dereferenceable(24) %f) unnamed_addr #1 {
start:
  %_3 = load ptr, ptr %self, align 8, !nonnull !2, !align !3, !noundef !2
  %_0 = call noundef zeroext i1 @_RNvXsW_NtNtCs407BcpMJGyA_4core3fmt3nummNtB7_5Debug3fmt(ptr noalias nofree noundef readonly align 4 captures(address, read_provenance) dereferenceable(4) %_3, ptr noalias nofree noundef align 8 dereferenceable(24) %f) #10
  ret i1 %_0
}

; Function Attrs: convergent inlinehint nounwind
define internal noundef zeroext i1 @_RNvXsW_NtNtCs407BcpMJGyA_4core3fmt3nummNtB7_5Debug3fmt(ptr noalias nofree noundef readonly align 4 captures(address, read_provenance) dereferenceable(4) %self, ptr noalias nofree noundef align 8 dereferenceable(24) %f) unnamed_addr #2 {
start:
  %_0 = alloca [1 x i8], align 1
  %0 = getelementptr inbounds i8, ptr %f, i64 16
  %_4 = load i32, ptr %0, align 8, !noundef !2
  %_3 = and i32 %_4, 33554432
  %1 = icmp eq i32 %_3, 0
  br i1 %1, label %bb2, label %bb1

bb2:                                              ; preds = %start
  %2 = getelementptr inbounds i8, ptr %f, i64 16
  %_6 = load i32, ptr %2, align 8, !noundef !2
  %_5 = and i32 %_6, 67108864
  %3 = icmp eq i32 %_5, 0
  br i1 %3, label %bb4, label %bb3

bb1:                                              ; preds = %start
  %4 = call noundef zeroext i1 @_RNvXsu_NtNtCs407BcpMJGyA_4core3fmt3nummNtB7_8LowerHex3fmt(ptr noalias nofree noundef readonly align 4 captures(address, read_provenance) dereferenceable(4) %self, ptr noalias nofree noundef align 8 dereferenceable(24) %f) #11
  %5 = zext i1 %4 to i8
  store i8 %5, ptr %_0, align 1
  br label %bb6

bb4:                                              ; preds = %bb2
  %6 = call noundef zeroext i1 @_RNvXs8_NtNtNtCs407BcpMJGyA_4core3fmt3num3impmNtB9_7Display3fmt(ptr noalias nofree noundef readonly align 4 captures(address, read_provenance) dereferenceable(4) %self, ptr noalias nofree noundef align 8 dereferenceable(24) %f) #11
  %7 = zext i1 %6 to i8
  store i8 %7, ptr %_0, align 1
  br label %bb5

bb3:                                              ; preds = %bb2
  %8 = call noundef zeroext i1 @_RNvXsw_NtNtCs407BcpMJGyA_4core3fmt3nummNtB7_8UpperHex3fmt(ptr noalias nofree noundef readonly align 4 captures(address, read_provenance) dereferenceable(4) %self, ptr noalias nofree noundef align 8 dereferenceable(24) %f) #11
  %9 = zext i1 %8 to i8
  store i8 %9, ptr %_0, align 1
  br label %bb5

bb5:                                              ; preds = %bb3, %bb4
  br label %bb6

bb6:                                              ; preds = %bb5, %bb1
  %10 = load i8, ptr %_0, align 1, !range !4, !noundef !2
  %11 = trunc nuw i8 %10 to i1
  ret i1 %11
}

; Function Attrs: convergent nounwind
declare noundef zeroext i1 @_RNvXsu_NtNtCs407BcpMJGyA_4core3fmt3nummNtB7_8LowerHex3fmt(ptr noalias nofree noundef readonly align 4 captures(address, read_provenance) dereferenceable(4), ptr noalias nofree noundef align 8 dereferenceable(24)) unnamed_addr #1

; Function Attrs: convergent nounwind
declare noundef zeroext i1 @_RNvXs8_NtNtNtCs407BcpMJGyA_4core3fmt3num3impmNtB9_7Display3fmt(ptr noalias nofree noundef readonly align 4 captures(address, read_provenance) dereferenceable(4), ptr noalias nofree noundef align 8 dereferenceable(24)) unnamed_addr #1

; Function Attrs: convergent nounwind
declare noundef zeroext i1 @_RNvXsw_NtNtCs407BcpMJGyA_4core3fmt3nummNtB7_8UpperHex3fmt(ptr noalias nofree noundef readonly align 4 captures(address, read_provenance) dereferenceable(4), ptr noalias nofree noundef align 8 dereferenceable(24)) unnamed_addr #1

; Function Attrs: convergent noreturn nounwind
define void @_RNvCs6rREvFdRhLb_7___rustc17rust_begin_unwind(ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) %_1) unnamed_addr #3 {
start:
  br label %bb1

bb1:                                              ; preds = %bb1, %start
  br label %bb1
}

; Function Attrs: convergent nounwind
define void @curium.kernel.panics(ptr noundef %y, i64 noundef %n) unnamed_addr #1 {
start:
  %_45 = alloca [16 x i8], align 8
  %_38 = alloca [1 x i8], align 1
  %_26 = alloca [16 x i8], align 8
  %text = alloca [16 x i8], align 8
  %_23 = alloca [16 x i8], align 8
  %args = alloca [16 x i8], align 8
  %_10 = alloca [8 x i8], align 4
  %0 = icmp eq i64 %n, 7
  %1 = call i1 @llvm.expect.i1(i1 %0, i1 false)
  br i1 %1, label %bb2, label %bb1

bb2:                                              ; preds = %start
  call void @llvm.assume(i1 true)
  %2 = icmp ne ptr inttoptr (i64 29 to ptr), null
  call void @llvm.assume(i1 %2)
  call void @_RNvNtCs407BcpMJGyA_4core9panicking9panic_fmt(ptr noundef nonnull @alloc_e6bb89186cf82ca10bdcb59ed5006cfc, ptr noundef nonnull inttoptr (i64 29 to ptr), ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_ab61a20ac1c0549f812bba1f6bc6abce) #9
  unreachable

bb1:                                              ; preds = %start
  %_6 = icmp ult i64 1, %n
  br i1 %_6, label %bb3, label %panic

bb3:                                              ; preds = %bb1
  %left_val = getelementptr inbounds nuw i32, ptr %y, i64 1
  %_7 = load i32, ptr %left_val, align 4, !noundef !2
  %3 = icmp eq i32 %_7, 3
  %4 = call i1 @llvm.expect.i1(i1 %3, i1 false)
  br i1 %4, label %bb4, label %bb5

panic:                                            ; preds = %bb1
  call void @_RNvNtCs407BcpMJGyA_4core9panicking18panic_bounds_check(i64 noundef 1, i64 noundef %n, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_93c5ee77442bc232d64f18ff4f8ccb09) #9
  unreachable

bb4:                                              ; preds = %bb3
  %5 = load ptr, ptr @anon.8def696cabf673b79b59bcc8b126a66c.0, align 8, !noundef !2
  %6 = load ptr, ptr getelementptr inbounds (i8, ptr @anon.8def696cabf673b79b59bcc8b126a66c.0, i64 8), align 8
  call void @_RINvNtCs407BcpMJGyA_4core9panicking13assert_failedmmECs81wYgPWXIw3_6panics(i8 noundef 1, ptr noalias nofree noundef readonly align 4 captures(address, read_provenance) dereferenceable(4) %left_val, ptr noalias nofree noundef readonly align 4 captures(address, read_provenance) dereferenceable(4) @alloc_bc6c24833cc57d8ab679f3fbe0b0ac4a, ptr noundef %5, ptr %6, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_be25cf4eac1679464f2f9e11957403c4) #9
  unreachable

bb5:                                              ; preds = %bb3
  call void @llvm.lifetime.start.p0(ptr %_10)
  %_12 = icmp ult i64 2, %n
  br i1 %_12, label %bb6, label %panic1

bb6:                                              ; preds = %bb5
  %7 = getelementptr inbounds nuw i32, ptr %y, i64 2
  %_11 = load i32, ptr %7, align 4, !noundef !2
  call void @llvm.lifetime.start.p0(ptr %_38)
  %_40.0 = add i32 %_11, 1
  %_40.1 = icmp ult i32 %_40.0, %_11
  %8 = call i1 @llvm.expect.i1(i1 %_40.1, i1 false)
  br i1 %8, label %bb21, label %bb23

panic1:                                           ; preds = %bb5
  call void @_RNvNtCs407BcpMJGyA_4core9panicking18panic_bounds_check(i64 noundef 2, i64 noundef %n, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_37ce9c8c81c9ac0428fe8cf942abc9a4) #9
  unreachable

bb23:                                             ; preds = %bb6
  store i8 0, ptr %_38, align 1
  br label %bb20

bb21:                                             ; preds = %bb6
  store i8 1, ptr %_38, align 1
  br label %bb20

bb20:                                             ; preds = %bb21, %bb23
  %9 = load i8, ptr %_38, align 1, !range !4, !noundef !2
  %10 = trunc nuw i8 %9 to i1
  br i1 %10, label %bb17, label %bb18

bb18:                                             ; preds = %bb20
  %_41 = add nuw i32 %_11, 1
  %11 = getelementptr inbounds i8, ptr %_10, i64 4
  store i32 %_41, ptr %11, align 4
  store i32 1, ptr %_10, align 4
  br label %bb19

bb17:                                             ; preds = %bb20
  %12 = load i32, ptr @anon.8def696cabf673b79b59bcc8b126a66c.1, align 4, !range !5, !noundef !2
  %13 = load i32, ptr getelementptr inbounds (i8, ptr @anon.8def696cabf673b79b59bcc8b126a66c.1, i64 4), align 4
  store i32 %12, ptr %_10, align 4
  %14 = getelementptr inbounds i8, ptr %_10, i64 4
  store i32 %13, ptr %14, align 4
  br label %bb19

bb19:                                             ; preds = %bb17, %bb18
  call void @llvm.lifetime.end.p0(ptr %_38)
  %15 = load i32, ptr %_10, align 4, !range !5, !noundef !2
  %16 = getelementptr inbounds i8, ptr %_10, i64 4
  %17 = load i32, ptr %16, align 4
  %_43 = zext i32 %15 to i64
  %18 = trunc nuw i64 %_43 to i1
  %19 = call i1 @llvm.expect.i1(i1 %18, i1 true)
  br i1 %19, label %bb26, label %bb25

bb26:                                             ; preds = %bb19
  %20 = getelementptr inbounds i8, ptr %_10, i64 4
  %_9 = load i32, ptr %20, align 4, !noundef !2
  call void @llvm.lifetime.end.p0(ptr %_10)
  %_14 = icmp ult i64 3, %n
  br i1 %_14, label %bb7, label %panic2

bb25:                                             ; preds = %bb19
  call void @_RNvNtCs407BcpMJGyA_4core6option13expect_failed(ptr noalias nofree noundef nonnull readonly captures(address, read_provenance) @alloc_50d91a0df53a0998ac9b98c483fd773f, i64 noundef 9, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_af25832a210bc536f8381b4a3e4c0a31) #9
  unreachable

bb7:                                              ; preds = %bb26
  %21 = getelementptr inbounds nuw i32, ptr %y, i64 3
  %_13 = load i32, ptr %21, align 4, !noundef !2
  %_15 = icmp eq i32 %_13, 0
  br i1 %_15, label %panic3, label %bb8

panic2:                                           ; preds = %bb26
  call void @_RNvNtCs407BcpMJGyA_4core9panicking18panic_bounds_check(i64 noundef 3, i64 noundef %n, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_98a0f15209c5733b9ab9acdc5e777570) #9
  unreachable

bb8:                                              ; preds = %bb7
  %_16 = icmp ult i64 0, %n
  br i1 %_16, label %bb9, label %panic4

panic3:                                           ; preds = %bb7
  call void @_RNvNtNtCs407BcpMJGyA_4core9panicking11panic_const23panic_const_div_by_zero(ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_37ce9c8c81c9ac0428fe8cf942abc9a4) #9
  unreachable

bb9:                                              ; preds = %bb8
  %22 = getelementptr inbounds nuw i32, ptr %y, i64 0
  %23 = udiv i32 %_9, %_13
  store i32 %23, ptr %22, align 4
  %_18 = icmp ult i64 4, %n
  br i1 %_18, label %bb10, label %panic5

panic4:                                           ; preds = %bb8
  call void @_RNvNtCs407BcpMJGyA_4core9panicking18panic_bounds_check(i64 noundef 0, i64 noundef %n, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_7287e55ba2892e9b1574aeee784619fe) #9
  unreachable

bb10:                                             ; preds = %bb9
  %24 = getelementptr inbounds nuw i32, ptr %y, i64 4
  %_17 = load i32, ptr %24, align 4, !noundef !2
  %25 = icmp eq i32 %_17, 5
  %26 = call i1 @llvm.expect.i1(i1 %25, i1 false)
  br i1 %26, label %bb11, label %bb13

panic5:                                           ; preds = %bb9
  call void @_RNvNtCs407BcpMJGyA_4core9panicking18panic_bounds_check(i64 noundef 4, i64 noundef %n, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_56b3823ccd078a8da2d8a751f7b3b841) #9
  unreachable

bb11:                                             ; preds = %bb10
  br i1 %_18, label %bb12, label %panic6

bb13:                                             ; preds = %bb10
  %27 = icmp eq i64 %n, 1
  br i1 %27, label %bb14, label %bb15

bb12:                                             ; preds = %bb11
  %args7 = getelementptr inbounds nuw i32, ptr %y, i64 4
  call void @llvm.lifetime.start.p0(ptr %args)
  call void @llvm.lifetime.start.p0(ptr %_23)
  call void @llvm.lifetime.start.p0(ptr %_45)
  %28 = icmp ne ptr %args7, null
  call void @llvm.assume(i1 %28)
  store ptr %args7, ptr %_45, align 8
  %29 = getelementptr inbounds i8, ptr %_45, i64 8
  store ptr @_RNvXs8_NtNtNtCs407BcpMJGyA_4core3fmt3num3impmNtB9_7Display3fmt, ptr %29, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %_23, ptr align 8 %_45, i64 16, i1 false)
  call void @llvm.lifetime.end.p0(ptr %_45)
  %30 = getelementptr inbounds nuw %"core::fmt::rt::Argument<'_>", ptr %args, i64 0
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %30, ptr align 8 %_23, i64 16, i1 false)
  call void @llvm.lifetime.end.p0(ptr %_23)
  call void @_RNvNtCs407BcpMJGyA_4core9panicking9panic_fmt(ptr noundef nonnull @alloc_70510dff9e61ed364f57cc85cdfdcc90, ptr noundef nonnull %args, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_3ab835e5cd903f9b90d859e2aef1686c) #9
  unreachable

panic6:                                           ; preds = %bb11
  call void @_RNvNtCs407BcpMJGyA_4core9panicking18panic_bounds_check(i64 noundef 4, i64 noundef %n, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_418a0d93cc3ef838e0b36b6161c9a7f7) #9
  unreachable

bb14:                                             ; preds = %bb13
  store ptr @alloc_63575c3e000160dea70bdb05edf17349, ptr %text, align 8, !captures !6
  %31 = getelementptr inbounds i8, ptr %text, i64 8
  store i64 3, ptr %31, align 8
  br label %bb16

bb15:                                             ; preds = %bb13
  store ptr @alloc_9f996ed252a71d524cc343cbe0ec14ef, ptr %text, align 8, !captures !6
  %32 = getelementptr inbounds i8, ptr %text, i64 8
  store i64 11, ptr %32, align 8
  br label %bb16

bb16:                                             ; preds = %bb15, %bb14
  %33 = getelementptr inbounds i8, ptr %_26, i64 8
  store i64 %n, ptr %33, align 8
  store i64 1, ptr %_26, align 8
  %_52 = icmp ugt i64 %n, 2
  br i1 %_52, label %bb28, label %bb29

bb29:                                             ; preds = %bb16
  %34 = load i64, ptr @anon.8def696cabf673b79b59bcc8b126a66c.0, align 8, !range !7, !noundef !2
  %35 = load i64, ptr getelementptr inbounds (i8, ptr @anon.8def696cabf673b79b59bcc8b126a66c.0, i64 8), align 8
  store i64 %34, ptr %_26, align 8
  %36 = getelementptr inbounds i8, ptr %_26, i64 8
  store i64 %35, ptr %36, align 8
  br label %bb27

bb28:                                             ; preds = %bb16
  br label %bb27

bb27:                                             ; preds = %bb28, %bb29
  %_53 = load i64, ptr %_26, align 8, !range !7, !noundef !2
  %37 = getelementptr inbounds i8, ptr %_26, i64 8
  %38 = load i64, ptr %37, align 8
  %39 = trunc nuw i64 %_53 to i1
  %40 = call i1 @llvm.expect.i1(i1 %39, i1 true)
  br i1 %40, label %bb31, label %bb30

bb31:                                             ; preds = %bb27
  ret void

bb30:                                             ; preds = %bb27
  %41 = load ptr, ptr %text, align 8, !nonnull !2, !noundef !2
  %42 = getelementptr inbounds i8, ptr %text, i64 8
  %43 = load i64, ptr %42, align 8, !noundef !2
  call void @_RNvNtCs407BcpMJGyA_4core6option13expect_failed(ptr noalias nofree noundef nonnull readonly captures(address, read_provenance) %41, i64 noundef %43, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_3aa8340a4a518e8670d9e332fc133fee) #9
  unreachable

bb24:                                             ; No predecessors!
  unreachable
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(none)
declare i1 @llvm.expect.i1(i1, i1) #4

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: write)
declare void @llvm.assume(i1 noundef) #5

; Function Attrs: cold convergent noinline noreturn nounwind
declare void @_RNvNtCs407BcpMJGyA_4core9panicking9panic_fmt(ptr noundef nonnull, ptr noundef nonnull, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24)) unnamed_addr #6

; Function Attrs: cold convergent minsize noinline noreturn nounwind optsize
declare void @_RNvNtCs407BcpMJGyA_4core9panicking18panic_bounds_check(i64 noundef, i64 noundef, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24)) unnamed_addr #0

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #7

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #7

; Function Attrs: cold convergent noinline noreturn nounwind
declare void @_RNvNtCs407BcpMJGyA_4core6option13expect_failed(ptr noalias nofree noundef nonnull readonly captures(address, read_provenance), i64 noundef, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24)) unnamed_addr #6

; Function Attrs: cold convergent noinline noreturn nounwind
declare void @_RNvNtNtCs407BcpMJGyA_4core9panicking11panic_const23panic_const_div_by_zero(ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24)) unnamed_addr #6

; Function Attrs: nocallback nofree nounwind willreturn memory(argmem: readwrite)
declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i64, i1 immarg) #8

attributes #0 = { cold convergent minsize noinline noreturn nounwind optsize "target-cpu"="sm_70" "target-features"="+ptx70" }
attributes #1 = { convergent nounwind "target-cpu"="sm_70" "target-features"="+ptx70" }
attributes #2 = { convergent inlinehint nounwind "target-cpu"="sm_70" "target-features"="+ptx70" }
attributes #3 = { convergent noreturn nounwind "target-cpu"="sm_70" "target-features"="+ptx70" }
attributes #4 = { nocallback nofree nosync nounwind willreturn memory(none) }
attributes #5 = { nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: write) }
attributes #6 = { cold convergent noinline noreturn nounwind "target-cpu"="sm_70" "target-features"="+ptx70" }
attributes #7 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #8 = { nocallback nofree nounwind willreturn memory(argmem: readwrite) }
attributes #9 = { noinline noreturn nounwind }
attributes #10 = { inlinehint nounwind }
attributes #11 = { nounwind }

!llvm.ident = !{!0}
!llvm.module.flags = !{!1}

!0 = !{!"rustc version 1.98.0 (88d9e12ae 2026-08-18)"}
!1 = !{i32 8, !"PIC Level", i32 2}
!2 = !{}
!3 = !{i64 4}
!4 = !{i8 0, i8 2}
!5 = !{i32 0, i32 2}
!6 = !{!"address", !"read_provenance"}
!7 = !{i64 0, i64 2}

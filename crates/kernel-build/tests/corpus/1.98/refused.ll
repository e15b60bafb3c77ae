; ModuleID = 'llvm-link'
source_filename = "llvm-link"
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@alloc_9cd20c3e415f4d39f0ceb012cb758628 = private unnamed_addr constant [40 x i8] c"there is no such thing as a release load", align 1
@alloc_ea03ddaeff8be42ddf959dad46a3c916 = private unnamed_addr constant [39 x i8] c"/rustc/library/core/src/sync/atomic.rs\00", align 1
@alloc_e34a00bc6475b939e0100250e0e22530 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_ea03ddaeff8be42ddf959dad46a3c916, [16 x i8] c"&\00\00\00\00\00\00\005\0F\00\00\18\00\00\00" }>, align 8
@alloc_96ab912d0054b46da785b206a96c9a45 = private unnamed_addr constant [49 x i8] c"there is no such thing as an acquire-release load", align 1
@alloc_bb99e164915d12c8051e26c43218ff83 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_ea03ddaeff8be42ddf959dad46a3c916, [16 x i8] c"&\00\00\00\00\00\00\006\0F\00\00\17\00\00\00" }>, align 8
@alloc_5a43f8d94dd4505c1dba43832ce73af8 = private unnamed_addr constant [52 x i8] c"there is no such thing as a release failure ordering", align 1
@alloc_30c5b4a6d83228cb2ae5885539cd4e9e = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_ea03ddaeff8be42ddf959dad46a3c916, [16 x i8] c"&\00\00\00\00\00\00\00\AB\0F\00\00\1D\00\00\00" }>, align 8
@alloc_7adef5546d83b439c7829602020737c6 = private unnamed_addr constant [61 x i8] c"there is no such thing as an acquire-release failure ordering", align 1
@alloc_d03207d2a4ef1e434c0ecbc93fd3fee0 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_ea03ddaeff8be42ddf959dad46a3c916, [16 x i8] c"&\00\00\00\00\00\00\00\AA\0F\00\00\1C\00\00\00" }>, align 8
@_RNvCslu1cxQ6TBSX_7refused7COUNTER = internal global [4 x i8] zeroinitializer, align 4
@alloc_929e9b2e7b7429614ca4fc017efff666 = private unnamed_addr constant [41 x i8] c"there is no such thing as a relaxed fence", align 1
@alloc_bf61eaddcbaba32d28733461f4bdc060 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_ea03ddaeff8be42ddf959dad46a3c916, [16 x i8] c"&\00\00\00\00\00\00\00\1B\11\00\00\18\00\00\00" }>, align 8
@curium.meta.refused = constant [88 x i8] c"\01\00\00\00\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\01\00\00\00p\00\00\00\08\00\00\00\08\00\00\00_\00\00\00\00\00\00\00\00\00\00\00_\00\00\00\00\00\00\00\00\00\00\00", section ".curium.kernel", align 4

; Function Attrs: convergent noreturn nounwind
define void @_RNvCs6rREvFdRhLb_7___rustc17rust_begin_unwind(ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) %_1) unnamed_addr #0 {
start:
  br label %bb1

bb1:                                              ; preds = %bb1, %start
  br label %bb1
}

; Function Attrs: convergent nounwind
define void @curium.kernel.refused(ptr noundef %y) unnamed_addr #1 {
start:
  %_3 = call noundef i32 @_RNvCslu1cxQ6TBSX_7refused8exchange(ptr noundef nonnull align 4 @_RNvCslu1cxQ6TBSX_7refused7COUNTER) #7
  %_4 = call noundef i32 @_RNvCslu1cxQ6TBSX_7refused4load(ptr noundef nonnull align 4 @_RNvCslu1cxQ6TBSX_7refused7COUNTER) #7
  %_2 = add i32 %_3, %_4
  %_5 = call noundef i32 @foreign() #8
  %0 = add i32 %_2, %_5
  store i32 %0, ptr %y, align 4
  ret void
}

; Function Attrs: convergent noinline nounwind
define internal noundef i32 @_RNvCslu1cxQ6TBSX_7refused8exchange(ptr noundef nonnull align 4 %n) unnamed_addr #2 {
start:
  %_2 = alloca [8 x i8], align 4
  %_0 = alloca [4 x i8], align 4
  call void @llvm.lifetime.start.p0(ptr %_2)
  %0 = call { i32, i32 } @_RINvNtNtCs407BcpMJGyA_4core4sync6atomic23atomic_compare_exchangemECslu1cxQ6TBSX_7refused(ptr noundef %n, i32 noundef 1, i32 noundef 2, i8 noundef 3, i8 noundef 0) #9
  %1 = extractvalue { i32, i32 } %0, 0
  %2 = extractvalue { i32, i32 } %0, 1
  store i32 %1, ptr %_2, align 4
  %3 = getelementptr inbounds i8, ptr %_2, i64 4
  store i32 %2, ptr %3, align 4
  %4 = load i32, ptr %_2, align 4, !range !2, !noundef !3
  %5 = getelementptr inbounds i8, ptr %_2, i64 4
  %6 = load i32, ptr %5, align 4, !noundef !3
  %_5 = zext i32 %4 to i64
  %7 = trunc nuw i64 %_5 to i1
  br i1 %7, label %bb4, label %bb5

bb4:                                              ; preds = %start
  store i32 3, ptr %_0, align 4
  br label %bb6

bb5:                                              ; preds = %start
  %8 = getelementptr inbounds i8, ptr %_2, i64 4
  %9 = load i32, ptr %8, align 4, !noundef !3
  store i32 %9, ptr %_0, align 4
  br label %bb6

bb6:                                              ; preds = %bb5, %bb4
  %10 = trunc nuw i64 %_5 to i1
  br i1 %10, label %bb2, label %bb2

bb2:                                              ; preds = %bb6, %bb6
  call void @llvm.lifetime.end.p0(ptr %_2)
  %11 = load i32, ptr %_0, align 4, !noundef !3
  ret i32 %11

bb3:                                              ; No predecessors!
  unreachable
}

; Function Attrs: convergent noinline nounwind
define internal noundef i32 @_RNvCslu1cxQ6TBSX_7refused4load(ptr noundef nonnull align 4 %n) unnamed_addr #2 {
start:
  call void @_RNvNtNtCs407BcpMJGyA_4core4sync6atomic5fence(i8 noundef 4) #9
  %_0 = call noundef i32 @_RINvNtNtCs407BcpMJGyA_4core4sync6atomic11atomic_loadmECslu1cxQ6TBSX_7refused(ptr noundef %n, i8 noundef 2) #9
  ret i32 %_0
}

; Function Attrs: convergent nounwind
declare noundef i32 @foreign() unnamed_addr #1

; Function Attrs: convergent inlinehint nounwind
define internal void @_RNvNtNtCs407BcpMJGyA_4core4sync6atomic5fence(i8 noundef range(i8 0, 5) %order) unnamed_addr #3 {
start:
  %_2 = zext i8 %order to i64
  switch i64 %_2, label %bb1 [
    i64 0, label %bb2
    i64 1, label %bb5
    i64 2, label %bb6
    i64 3, label %bb4
    i64 4, label %bb3
  ], !prof !4

bb1:                                              ; preds = %start
  unreachable

bb2:                                              ; preds = %start
  call void @llvm.assume(i1 true)
  %0 = icmp ne ptr inttoptr (i64 83 to ptr), null
  call void @llvm.assume(i1 %0)
  call void @_RNvNtCs407BcpMJGyA_4core9panicking9panic_fmt(ptr noundef nonnull @alloc_929e9b2e7b7429614ca4fc017efff666, ptr noundef nonnull inttoptr (i64 83 to ptr), ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_bf61eaddcbaba32d28733461f4bdc060) #10
  unreachable

bb5:                                              ; preds = %start
  fence release
  br label %bb7

bb6:                                              ; preds = %start
  fence acquire
  br label %bb7

bb4:                                              ; preds = %start
  fence acq_rel
  br label %bb7

bb3:                                              ; preds = %start
  fence seq_cst
  br label %bb7

bb7:                                              ; preds = %bb3, %bb4, %bb6, %bb5
  ret void
}

; Function Attrs: convergent inlinehint nounwind
define internal noundef i32 @_RINvNtNtCs407BcpMJGyA_4core4sync6atomic11atomic_loadmECslu1cxQ6TBSX_7refused(ptr noundef %dst, i8 noundef range(i8 0, 5) %order) unnamed_addr #3 {
start:
  %_0 = alloca [4 x i8], align 4
  %_3 = zext i8 %order to i64
  switch i64 %_3, label %bb1 [
    i64 0, label %bb6
    i64 1, label %bb3
    i64 2, label %bb5
    i64 3, label %bb2
    i64 4, label %bb4
  ], !prof !5

bb1:                                              ; preds = %start
  unreachable

bb6:                                              ; preds = %start
  %0 = load atomic i32, ptr %dst monotonic, align 4
  store i32 %0, ptr %_0, align 4
  br label %bb7

bb3:                                              ; preds = %start
  call void @llvm.assume(i1 true)
  %1 = icmp ne ptr inttoptr (i64 81 to ptr), null
  call void @llvm.assume(i1 %1)
  call void @_RNvNtCs407BcpMJGyA_4core9panicking9panic_fmt(ptr noundef nonnull @alloc_9cd20c3e415f4d39f0ceb012cb758628, ptr noundef nonnull inttoptr (i64 81 to ptr), ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_e34a00bc6475b939e0100250e0e22530) #10
  unreachable

bb5:                                              ; preds = %start
  %2 = load atomic i32, ptr %dst acquire, align 4
  store i32 %2, ptr %_0, align 4
  br label %bb7

bb2:                                              ; preds = %start
  call void @llvm.assume(i1 true)
  %3 = icmp ne ptr inttoptr (i64 99 to ptr), null
  call void @llvm.assume(i1 %3)
  call void @_RNvNtCs407BcpMJGyA_4core9panicking9panic_fmt(ptr noundef nonnull @alloc_96ab912d0054b46da785b206a96c9a45, ptr noundef nonnull inttoptr (i64 99 to ptr), ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_bb99e164915d12c8051e26c43218ff83) #10
  unreachable

bb4:                                              ; preds = %start
  %4 = load atomic i32, ptr %dst seq_cst, align 4
  store i32 %4, ptr %_0, align 4
  br label %bb7

bb7:                                              ; preds = %bb4, %bb5, %bb6
  %5 = load i32, ptr %_0, align 4, !noundef !3
  ret i32 %5
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: write)
declare void @llvm.assume(i1 noundef) #4

; Function Attrs: cold convergent noinline noreturn nounwind
declare void @_RNvNtCs407BcpMJGyA_4core9panicking9panic_fmt(ptr noundef nonnull, ptr noundef nonnull, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24)) unnamed_addr #5

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #6

; Function Attrs: convergent inlinehint nounwind
define internal { i32, i32 } @_RINvNtNtCs407BcpMJGyA_4core4sync6atomic23atomic_compare_exchangemECslu1cxQ6TBSX_7refused(ptr noundef %dst, i32 noundef %old, i32 noundef %new, i8 noundef range(i8 0, 5) %success, i8 noundef range(i8 0, 5) %failure) unnamed_addr #3 {
start:
  %_8 = alloca [8 x i8], align 4
  %_0 = alloca [8 x i8], align 4
  call void @llvm.lifetime.start.p0(ptr %_8)
  %_14 = zext i8 %success to i64
  switch i64 %_14, label %bb7 [
    i64 0, label %bb2
    i64 1, label %bb4
    i64 2, label %bb3
    i64 3, label %bb5
    i64 4, label %bb6
  ]

bb7:                                              ; preds = %bb1, %start
  unreachable

bb2:                                              ; preds = %start
  %_9 = zext i8 %failure to i64
  switch i64 %_9, label %bb1 [
    i64 0, label %bb24
    i64 2, label %bb23
    i64 4, label %bb22
  ], !prof !6

bb4:                                              ; preds = %start
  %_11 = zext i8 %failure to i64
  switch i64 %_11, label %bb1 [
    i64 0, label %bb18
    i64 2, label %bb17
    i64 4, label %bb16
  ], !prof !6

bb3:                                              ; preds = %start
  %_10 = zext i8 %failure to i64
  switch i64 %_10, label %bb1 [
    i64 0, label %bb21
    i64 2, label %bb20
    i64 4, label %bb19
  ], !prof !6

bb5:                                              ; preds = %start
  %_12 = zext i8 %failure to i64
  switch i64 %_12, label %bb1 [
    i64 0, label %bb15
    i64 2, label %bb14
    i64 4, label %bb13
  ], !prof !6

bb6:                                              ; preds = %start
  %_13 = zext i8 %failure to i64
  switch i64 %_13, label %bb1 [
    i64 0, label %bb12
    i64 2, label %bb11
    i64 4, label %bb10
  ], !prof !6

bb1:                                              ; preds = %bb6, %bb5, %bb3, %bb4, %bb2
  %_15 = zext i8 %failure to i64
  switch i64 %_15, label %bb7 [
    i64 1, label %bb8
    i64 3, label %bb9
  ]

bb24:                                             ; preds = %bb2
  %0 = cmpxchg ptr %dst, i32 %old, i32 %new monotonic monotonic, align 4
  %1 = extractvalue { i32, i1 } %0, 0
  %2 = extractvalue { i32, i1 } %0, 1
  %3 = zext i1 %2 to i8
  store i32 %1, ptr %_8, align 4
  %4 = getelementptr inbounds i8, ptr %_8, i64 4
  store i8 %3, ptr %4, align 4
  br label %bb25

bb23:                                             ; preds = %bb2
  %5 = cmpxchg ptr %dst, i32 %old, i32 %new monotonic acquire, align 4
  %6 = extractvalue { i32, i1 } %5, 0
  %7 = extractvalue { i32, i1 } %5, 1
  %8 = zext i1 %7 to i8
  store i32 %6, ptr %_8, align 4
  %9 = getelementptr inbounds i8, ptr %_8, i64 4
  store i8 %8, ptr %9, align 4
  br label %bb25

bb22:                                             ; preds = %bb2
  %10 = cmpxchg ptr %dst, i32 %old, i32 %new monotonic seq_cst, align 4
  %11 = extractvalue { i32, i1 } %10, 0
  %12 = extractvalue { i32, i1 } %10, 1
  %13 = zext i1 %12 to i8
  store i32 %11, ptr %_8, align 4
  %14 = getelementptr inbounds i8, ptr %_8, i64 4
  store i8 %13, ptr %14, align 4
  br label %bb25

bb25:                                             ; preds = %bb10, %bb11, %bb12, %bb13, %bb14, %bb15, %bb19, %bb20, %bb21, %bb16, %bb17, %bb18, %bb22, %bb23, %bb24
  %val = load i32, ptr %_8, align 4, !noundef !3
  %15 = getelementptr inbounds i8, ptr %_8, i64 4
  %16 = load i8, ptr %15, align 4, !range !7, !noundef !3
  %ok = trunc nuw i8 %16 to i1
  call void @llvm.lifetime.end.p0(ptr %_8)
  br i1 %ok, label %bb26, label %bb27

bb18:                                             ; preds = %bb4
  %17 = cmpxchg ptr %dst, i32 %old, i32 %new release monotonic, align 4
  %18 = extractvalue { i32, i1 } %17, 0
  %19 = extractvalue { i32, i1 } %17, 1
  %20 = zext i1 %19 to i8
  store i32 %18, ptr %_8, align 4
  %21 = getelementptr inbounds i8, ptr %_8, i64 4
  store i8 %20, ptr %21, align 4
  br label %bb25

bb17:                                             ; preds = %bb4
  %22 = cmpxchg ptr %dst, i32 %old, i32 %new release acquire, align 4
  %23 = extractvalue { i32, i1 } %22, 0
  %24 = extractvalue { i32, i1 } %22, 1
  %25 = zext i1 %24 to i8
  store i32 %23, ptr %_8, align 4
  %26 = getelementptr inbounds i8, ptr %_8, i64 4
  store i8 %25, ptr %26, align 4
  br label %bb25

bb16:                                             ; preds = %bb4
  %27 = cmpxchg ptr %dst, i32 %old, i32 %new release seq_cst, align 4
  %28 = extractvalue { i32, i1 } %27, 0
  %29 = extractvalue { i32, i1 } %27, 1
  %30 = zext i1 %29 to i8
  store i32 %28, ptr %_8, align 4
  %31 = getelementptr inbounds i8, ptr %_8, i64 4
  store i8 %30, ptr %31, align 4
  br label %bb25

bb21:                                             ; preds = %bb3
  %32 = cmpxchg ptr %dst, i32 %old, i32 %new acquire monotonic, align 4
  %33 = extractvalue { i32, i1 } %32, 0
  %34 = extractvalue { i32, i1 } %32, 1
  %35 = zext i1 %34 to i8
  store i32 %33, ptr %_8, align 4
  %36 = getelementptr inbounds i8, ptr %_8, i64 4
  store i8 %35, ptr %36, align 4
  br label %bb25

bb20:                                             ; preds = %bb3
  %37 = cmpxchg ptr %dst, i32 %old, i32 %new acquire acquire, align 4
  %38 = extractvalue { i32, i1 } %37, 0
  %39 = extractvalue { i32, i1 } %37, 1
  %40 = zext i1 %39 to i8
  store i32 %38, ptr %_8, align 4
  %41 = getelementptr inbounds i8, ptr %_8, i64 4
  store i8 %40, ptr %41, align 4
  br label %bb25

bb19:                                             ; preds = %bb3
  %42 = cmpxchg ptr %dst, i32 %old, i32 %new acquire seq_cst, align 4
  %43 = extractvalue { i32, i1 } %42, 0
  %44 = extractvalue { i32, i1 } %42, 1
  %45 = zext i1 %44 to i8
  store i32 %43, ptr %_8, align 4
  %46 = getelementptr inbounds i8, ptr %_8, i64 4
  store i8 %45, ptr %46, align 4
  br label %bb25

bb15:                                             ; preds = %bb5
  %47 = cmpxchg ptr %dst, i32 %old, i32 %new acq_rel monotonic, align 4
  %48 = extractvalue { i32, i1 } %47, 0
  %49 = extractvalue { i32, i1 } %47, 1
  %50 = zext i1 %49 to i8
  store i32 %48, ptr %_8, align 4
  %51 = getelementptr inbounds i8, ptr %_8, i64 4
  store i8 %50, ptr %51, align 4
  br label %bb25

bb14:                                             ; preds = %bb5
  %52 = cmpxchg ptr %dst, i32 %old, i32 %new acq_rel acquire, align 4
  %53 = extractvalue { i32, i1 } %52, 0
  %54 = extractvalue { i32, i1 } %52, 1
  %55 = zext i1 %54 to i8
  store i32 %53, ptr %_8, align 4
  %56 = getelementptr inbounds i8, ptr %_8, i64 4
  store i8 %55, ptr %56, align 4
  br label %bb25

bb13:                                             ; preds = %bb5
  %57 = cmpxchg ptr %dst, i32 %old, i32 %new acq_rel seq_cst, align 4
  %58 = extractvalue { i32, i1 } %57, 0
  %59 = extractvalue { i32, i1 } %57, 1
  %60 = zext i1 %59 to i8
  store i32 %58, ptr %_8, align 4
  %61 = getelementptr inbounds i8, ptr %_8, i64 4
  store i8 %60, ptr %61, align 4
  br label %bb25

bb12:                                             ; preds = %bb6
  %62 = cmpxchg ptr %dst, i32 %old, i32 %new seq_cst monotonic, align 4
  %63 = extractvalue { i32, i1 } %62, 0
  %64 = extractvalue { i32, i1 } %62, 1
  %65 = zext i1 %64 to i8
  store i32 %63, ptr %_8, align 4
  %66 = getelementptr inbounds i8, ptr %_8, i64 4
  store i8 %65, ptr %66, align 4
  br label %bb25

bb11:                                             ; preds = %bb6
  %67 = cmpxchg ptr %dst, i32 %old, i32 %new seq_cst acquire, align 4
  %68 = extractvalue { i32, i1 } %67, 0
  %69 = extractvalue { i32, i1 } %67, 1
  %70 = zext i1 %69 to i8
  store i32 %68, ptr %_8, align 4
  %71 = getelementptr inbounds i8, ptr %_8, i64 4
  store i8 %70, ptr %71, align 4
  br label %bb25

bb10:                                             ; preds = %bb6
  %72 = cmpxchg ptr %dst, i32 %old, i32 %new seq_cst seq_cst, align 4
  %73 = extractvalue { i32, i1 } %72, 0
  %74 = extractvalue { i32, i1 } %72, 1
  %75 = zext i1 %74 to i8
  store i32 %73, ptr %_8, align 4
  %76 = getelementptr inbounds i8, ptr %_8, i64 4
  store i8 %75, ptr %76, align 4
  br label %bb25

bb27:                                             ; preds = %bb25
  %77 = getelementptr inbounds i8, ptr %_0, i64 4
  store i32 %val, ptr %77, align 4
  store i32 1, ptr %_0, align 4
  br label %bb28

bb26:                                             ; preds = %bb25
  %78 = getelementptr inbounds i8, ptr %_0, i64 4
  store i32 %val, ptr %78, align 4
  store i32 0, ptr %_0, align 4
  br label %bb28

bb28:                                             ; preds = %bb26, %bb27
  %79 = load i32, ptr %_0, align 4, !range !2, !noundef !3
  %80 = getelementptr inbounds i8, ptr %_0, i64 4
  %81 = load i32, ptr %80, align 4, !noundef !3
  %82 = insertvalue { i32, i32 } poison, i32 %79, 0
  %83 = insertvalue { i32, i32 } %82, i32 %81, 1
  ret { i32, i32 } %83

bb8:                                              ; preds = %bb1
  call void @llvm.assume(i1 true)
  %84 = icmp ne ptr inttoptr (i64 105 to ptr), null
  call void @llvm.assume(i1 %84)
  call void @_RNvNtCs407BcpMJGyA_4core9panicking9panic_fmt(ptr noundef nonnull @alloc_5a43f8d94dd4505c1dba43832ce73af8, ptr noundef nonnull inttoptr (i64 105 to ptr), ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_30c5b4a6d83228cb2ae5885539cd4e9e) #10
  unreachable

bb9:                                              ; preds = %bb1
  call void @llvm.assume(i1 true)
  %85 = icmp ne ptr inttoptr (i64 123 to ptr), null
  call void @llvm.assume(i1 %85)
  call void @_RNvNtCs407BcpMJGyA_4core9panicking9panic_fmt(ptr noundef nonnull @alloc_7adef5546d83b439c7829602020737c6, ptr noundef nonnull inttoptr (i64 123 to ptr), ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_d03207d2a4ef1e434c0ecbc93fd3fee0) #10
  unreachable
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #6

attributes #0 = { convergent noreturn nounwind "target-cpu"="sm_70" "target-features"="+ptx70" }
attributes #1 = { convergent nounwind "target-cpu"="sm_70" "target-features"="+ptx70" }
attributes #2 = { convergent noinline nounwind "target-cpu"="sm_70" "target-features"="+ptx70" }
attributes #3 = { convergent inlinehint nounwind "target-cpu"="sm_70" "target-features"="+ptx70" }
attributes #4 = { nocallback nofree nosync nounwind willreturn memory(inaccessiblemem: write) }
attributes #5 = { cold convergent noinline noreturn nounwind "target-cpu"="sm_70" "target-features"="+ptx70" }
attributes #6 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #7 = { noinline nounwind }
attributes #8 = { nounwind }
attributes #9 = { inlinehint nounwind }
attributes #10 = { noinline noreturn nounwind }

!llvm.ident = !{!0}
!llvm.module.flags = !{!1}

!0 = !{!"rustc version 1.98.0 (88d9e12ae 2026-08-18)"}
!1 = !{i32 8, !"PIC Level", i32 2}
!2 = !{i32 0, i32 2}
!3 = !{}
!4 = !{!"branch_weights", i32 1, i32 1, i32 2000, i32 2000, i32 2000, i32 2000}
!5 = !{!"branch_weights", i32 1, i32 2000, i32 1, i32 2000, i32 1, i32 2000}
!6 = !{!"branch_weights", i32 1, i32 2000, i32 2000, i32 2000}
!7 = !{i8 0, i8 2}

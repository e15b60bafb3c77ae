; ModuleID = 'llvm-link'
source_filename = "llvm-link"
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@alloc_bc6c24833cc57d8ab679f3fbe0b0ac4a = private unnamed_addr constant [4 x i8] c"\03\00\00\00", align 4
@vtable.0 = private unnamed_addr constant <{ [24 x i8], ptr }> <{ [24 x i8] c"\00\00\00\00\00\00\00\00\04\00\00\00\00\00\00\00\04\00\00\00\00\00\00\00", ptr @_RNvXCsa0hsDRaIvNe_5callsNtB2_6SquareNtB2_5Shape4area }>, align 8
@alloc_47c8330ffe7a09bc00d165d03facdeb6 = private unnamed_addr constant [4 x i8] c"\FF\FF\FF\FF", align 4
@vtable.1 = private unnamed_addr constant <{ [24 x i8], ptr }> <{ [24 x i8] c"\00\00\00\00\00\00\00\00\04\00\00\00\00\00\00\00\04\00\00\00\00\00\00\00", ptr @_RNvXs_Csa0hsDRaIvNe_5callsNtB4_4WaitNtB4_5Shape4area }>, align 8
@alloc_3e8270233094d6637f4f4778319c08ec = private unnamed_addr constant [9 x i8] c"calls.rs\00", align 1
@alloc_5401e60f65ec2814b8a5f8b99430c795 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_3e8270233094d6637f4f4778319c08ec, [16 x i8] c"\08\00\00\00\00\00\00\003\00\00\00\10\00\00\00" }>, align 8
@curium.meta.calls = constant [88 x i8] c"\01\00\00\00\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\01\00\00\00p\00\00\00\08\00\00\00\08\00\00\00v\00\00\00\08\00\00\00\08\00\00\00_\00\00\00\00\00\00\00\00\00\00\00", section ".curium.kernel", align 4

; Function Attrs: convergent noreturn nounwind
define void @_RNvCs9wFQrvczXsK_7___rustc17rust_begin_unwind(ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) %_1) unnamed_addr #0 {
start:
  br label %bb1

bb1:                                              ; preds = %bb1, %start
  br label %bb1
}

; Function Attrs: convergent nounwind
define noundef i32 @_RNvXs_Csa0hsDRaIvNe_5callsNtB4_4WaitNtB4_5Shape4area(ptr noalias noundef readonly align 4 captures(address, read_provenance) dereferenceable(4) %self) unnamed_addr #1 {
start:
  %_3 = load i32, ptr %self, align 4, !noundef !2
  call void @"curium.asm|bar.warp.sync $0;|r|"(i32 noundef %_3) #7
  ret i32 1
}

; Function Attrs: convergent nounwind
declare void @"curium.asm|bar.warp.sync $0;|r|"(i32 noundef) unnamed_addr #1

; Function Attrs: convergent nounwind
define void @curium.kernel.calls(ptr noundef %y, i64 noundef %n) unnamed_addr #1 {
start:
  %0 = alloca [4 x i8], align 4
  %high = alloca [4 x i8], align 4
  %low = alloca [4 x i8], align 4
  %functions = alloca [16 x i8], align 8
  %shape = alloca [16 x i8], align 8
  %1 = icmp eq i64 %n, 3
  br i1 %1, label %bb1, label %bb2

bb1:                                              ; preds = %start
  store ptr @alloc_bc6c24833cc57d8ab679f3fbe0b0ac4a, ptr %shape, align 8
  %2 = getelementptr inbounds i8, ptr %shape, i64 8
  store ptr @vtable.0, ptr %2, align 8
  br label %bb3

bb2:                                              ; preds = %start
  store ptr @alloc_47c8330ffe7a09bc00d165d03facdeb6, ptr %shape, align 8
  %3 = getelementptr inbounds i8, ptr %shape, i64 8
  store ptr @vtable.1, ptr %3, align 8
  br label %bb3

bb3:                                              ; preds = %bb2, %bb1
  call void @llvm.lifetime.start.p0(ptr %functions)
  %4 = getelementptr inbounds nuw ptr, ptr %functions, i64 0
  store ptr @_RNvYNCNvCsa0hsDRaIvNe_5calls5entry0INtNtNtCsghKLg4SQgWv_4core3ops8function6FnOnceTmEE9call_onceB6_, ptr %4, align 8
  %5 = getelementptr inbounds nuw ptr, ptr %functions, i64 1
  store ptr @_RNvYNCNvCsa0hsDRaIvNe_5calls5entrys_0INtNtNtCsghKLg4SQgWv_4core3ops8function6FnOnceTmEE9call_onceB6_, ptr %5, align 8
  call void @llvm.lifetime.start.p0(ptr %low)
  store i32 0, ptr %low, align 4
  call void @llvm.lifetime.start.p0(ptr %high)
  store i32 0, ptr %high, align 4
  call void @"curium.asm|mov.b64 {$0, $1}, $2;|=r,=r,l|pure"(ptr noundef %low, ptr noundef %high, i64 noundef %n) #7
  %_18 = urem i64 %n, 2
  %_19 = icmp ult i64 %_18, 2
  br i1 %_19, label %bb5, label %panic

bb5:                                              ; preds = %bb3
  %6 = getelementptr inbounds nuw ptr, ptr %functions, i64 %_18
  %_17 = load ptr, ptr %6, align 8, !nonnull !2, !noundef !2
  %7 = load ptr, ptr %shape, align 8, !nonnull !2, !noundef !2
  %8 = getelementptr inbounds i8, ptr %shape, i64 8
  %9 = load ptr, ptr %8, align 8, !nonnull !2, !align !3, !noundef !2
  %10 = getelementptr inbounds i8, ptr %9, i64 24
  %11 = load ptr, ptr %10, align 8, !invariant.load !2, !nonnull !2
  %_20 = call noundef i32 %11(ptr noundef %7) #7
  %_16 = call noundef i32 %_17(i32 noundef %_20) #7
  %_21 = load i32, ptr %low, align 4, !noundef !2
  %_15 = add i32 %_16, %_21
  %_22 = load i32, ptr %high, align 4, !noundef !2
  %_14 = add i32 %_15, %_22
  %_13 = call noundef i32 @"curium.atomicrmw|add|device|monotonic|u32"(ptr noundef %y, i32 noundef %_14) #7
  switch i64 %n, label %bb9 [
    i64 0, label %bb12
    i64 1, label %bb11
    i64 2, label %bb10
  ]

panic:                                            ; preds = %bb3
  call void @_RNvNtCsghKLg4SQgWv_4core9panicking18panic_bounds_check(i64 noundef %_18, i64 noundef 2, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_5401e60f65ec2814b8a5f8b99430c795) #8
  unreachable

bb9:                                              ; preds = %bb5
  %_26 = getelementptr inbounds nuw i32, ptr %y, i64 2
  %12 = mul i64 4, %n
  call void @llvm.memmove.p0.p0.i64(ptr align 4 %_26, ptr align 4 %y, i64 %12, i1 false)
  br label %bb12

bb12:                                             ; preds = %bb10, %bb11, %bb9, %bb5
  call void @llvm.lifetime.end.p0(ptr %high)
  call void @llvm.lifetime.end.p0(ptr %low)
  call void @llvm.lifetime.end.p0(ptr %functions)
  ret void

bb11:                                             ; preds = %bb5
  store i32 5, ptr %y, align 4
  br label %bb12

bb10:                                             ; preds = %bb5
  call void @llvm.lifetime.start.p0(ptr %0)
  %13 = call i32 @llvm.ctpop.i32(i32 -1)
  store i32 %13, ptr %0, align 4
  %_23 = load i32, ptr %0, align 4, !noundef !2
  call void @llvm.lifetime.end.p0(ptr %0)
  %_24 = getelementptr inbounds nuw i32, ptr %y, i64 1
  store i32 %_23, ptr %_24, align 4
  br label %bb12
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #2

; Function Attrs: convergent inlinehint nounwind
define internal noundef i32 @_RNvYNCNvCsa0hsDRaIvNe_5calls5entry0INtNtNtCsghKLg4SQgWv_4core3ops8function6FnOnceTmEE9call_onceB6_(i32 noundef %0) unnamed_addr #3 {
start:
  %_2 = alloca [4 x i8], align 4
  %_1 = alloca [0 x i8], align 1
  store i32 %0, ptr %_2, align 4
  %1 = load i32, ptr %_2, align 4, !noundef !2
  %_0 = call noundef i32 @_RNCNvCsa0hsDRaIvNe_5calls5entry0B3_(ptr noalias noundef nonnull readonly captures(address, read_provenance) %_1, i32 noundef %1) #7
  ret i32 %_0
}

; Function Attrs: convergent inlinehint nounwind
define internal noundef i32 @_RNvYNCNvCsa0hsDRaIvNe_5calls5entrys_0INtNtNtCsghKLg4SQgWv_4core3ops8function6FnOnceTmEE9call_onceB6_(i32 noundef %0) unnamed_addr #3 {
start:
  %_2 = alloca [4 x i8], align 4
  %_1 = alloca [0 x i8], align 1
  store i32 %0, ptr %_2, align 4
  %1 = load i32, ptr %_2, align 4, !noundef !2
  %_0 = call noundef i32 @_RNCNvCsa0hsDRaIvNe_5calls5entrys_0B3_(ptr noalias noundef nonnull readonly captures(address, read_provenance) %_1, i32 noundef %1) #7
  ret i32 %_0
}

; Function Attrs: convergent nounwind
declare void @"curium.asm|mov.b64 {$0, $1}, $2;|=r,=r,l|pure"(ptr noundef, ptr noundef, i64 noundef) unnamed_addr #1

; Function Attrs: convergent nounwind
declare noundef i32 @"curium.atomicrmw|add|device|monotonic|u32"(ptr noundef, i32 noundef) unnamed_addr #1

; Function Attrs: cold convergent minsize noinline noreturn nounwind optsize
declare void @_RNvNtCsghKLg4SQgWv_4core9panicking18panic_bounds_check(i64 noundef, i64 noundef, ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24)) unnamed_addr #4

; Function Attrs: nocallback nofree nounwind willreturn memory(argmem: readwrite)
declare void @llvm.memmove.p0.p0.i64(ptr writeonly captures(none), ptr readonly captures(none), i64, i1 immarg) #5

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #2

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.ctpop.i32(i32) #6

; Function Attrs: convergent inlinehint nounwind
define internal noundef i32 @_RNCNvCsa0hsDRaIvNe_5calls5entrys_0B3_(ptr noalias noundef nonnull readonly captures(address, read_provenance) %_1, i32 noundef %x) unnamed_addr #3 {
start:
  %_0 = mul i32 %x, 2
  ret i32 %_0
}

; Function Attrs: convergent inlinehint nounwind
define internal noundef i32 @_RNCNvCsa0hsDRaIvNe_5calls5entry0B3_(ptr noalias noundef nonnull readonly captures(address, read_provenance) %_1, i32 noundef %x) unnamed_addr #3 {
start:
  %_0 = add i32 %x, 1
  ret i32 %_0
}

; Function Attrs: convergent nounwind
define internal noundef i32 @_RNvXCsa0hsDRaIvNe_5callsNtB2_6SquareNtB2_5Shape4area(ptr noalias noundef readonly align 4 captures(address, read_provenance) dereferenceable(4) %self) unnamed_addr #1 {
start:
  %_2 = load i32, ptr %self, align 4, !noundef !2
  %_0 = mul i32 %_2, %_2
  ret i32 %_0
}

attributes #0 = { convergent noreturn nounwind "target-cpu"="sm_70" "target-features"="+ptx70" }
attributes #1 = { convergent nounwind "target-cpu"="sm_70" "target-features"="+ptx70" }
attributes #2 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #3 = { convergent inlinehint nounwind "target-cpu"="sm_70" "target-features"="+ptx70" }
attributes #4 = { cold convergent minsize noinline noreturn nounwind optsize "target-cpu"="sm_70" "target-features"="+ptx70" }
attributes #5 = { nocallback nofree nounwind willreturn memory(argmem: readwrite) }
attributes #6 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #7 = { nounwind }
attributes #8 = { noreturn nounwind }

!llvm.ident = !{!0}
!llvm.module.flags = !{!1}

!0 = !{!"rustc version 1.97.1 (8bab26f4f 2026-07-14)"}
!1 = !{i32 8, !"PIC Level", i32 2}
!2 = !{}
!3 = !{i64 8}

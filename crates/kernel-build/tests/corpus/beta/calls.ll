; ModuleID = 'llvm-link'
source_filename = "llvm-link"
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@alloc_bc6c24833cc57d8ab679f3fbe0b0ac4a = private unnamed_addr constant [4 x i8] c"\03\00\00\00", align 4, !guid !0
@vtable.0 = private unnamed_addr constant <{ [24 x i8], ptr }> <{ [24 x i8] c"\00\00\00\00\00\00\00\00\04\00\00\00\00\00\00\00\04\00\00\00\00\00\00\00", ptr @_RNvXCsbX44S6ylP1R_5callsNtB2_6SquareNtB2_5Shape4area }>, align 8, !guid !1
@alloc_47c8330ffe7a09bc00d165d03facdeb6 = private unnamed_addr constant [4 x i8] c"\FF\FF\FF\FF", align 4, !guid !2
@vtable.1 = private unnamed_addr constant <{ [24 x i8], ptr }> <{ [24 x i8] c"\00\00\00\00\00\00\00\00\04\00\00\00\00\00\00\00\04\00\00\00\00\00\00\00", ptr @_RNvXs_CsbX44S6ylP1R_5callsNtB4_4WaitNtB4_5Shape4area }>, align 8, !guid !3
@alloc_3e8270233094d6637f4f4778319c08ec = private unnamed_addr constant [9 x i8] c"calls.rs\00", align 1, !guid !4
@alloc_5401e60f65ec2814b8a5f8b99430c795 = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_3e8270233094d6637f4f4778319c08ec, [16 x i8] c"\08\00\00\00\00\00\00\003\00\00\00\10\00\00\00" }>, align 8, !guid !5
@curium.meta.calls = constant [88 x i8] c"\01\00\00\00\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\01\00\00\00p\00\00\00\08\00\00\00\08\00\00\00v\00\00\00\08\00\00\00\08\00\00\00_\00\00\00\00\00\00\00\00\00\00\00", section ".curium.kernel", align 4, !guid !6

; Function Attrs: convergent noreturn nounwind
define void @_RNvCskM75ATVFuVh_7___rustc17rust_begin_unwind(ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) %_1) unnamed_addr #0 !guid !9 {
start:
  br label %bb1

bb1:                                              ; preds = %bb1, %start
  br label %bb1
}

; Function Attrs: convergent nounwind
define noundef i32 @_RNvXs_CsbX44S6ylP1R_5callsNtB4_4WaitNtB4_5Shape4area(ptr noalias nofree noundef readonly align 4 captures(address, read_provenance) dereferenceable(4) %self) unnamed_addr #1 !guid !10 {
start:
  %_3 = load i32, ptr %self, align 4, !noundef !11
  call void @"curium.asm|bar.warp.sync $0;|r|"(i32 noundef %_3) #6
  ret i32 1
}

; Function Attrs: convergent nounwind
declare void @"curium.asm|bar.warp.sync $0;|r|"(i32 noundef) unnamed_addr #1

; Function Attrs: convergent nounwind
define void @curium.kernel.calls(ptr noundef %y, i64 noundef %n) unnamed_addr #1 !guid !12 {
start:
  %high = alloca [4 x i8], align 4
  %low = alloca [4 x i8], align 4
  %functions = alloca [16 x i8], align 8
  %shape = alloca [16 x i8], align 8
  %0 = icmp eq i64 %n, 3
  br i1 %0, label %bb1, label %bb2

bb1:                                              ; preds = %start
  store ptr @alloc_bc6c24833cc57d8ab679f3fbe0b0ac4a, ptr %shape, align 8
  %1 = getelementptr inbounds i8, ptr %shape, i64 8
  store ptr @vtable.0, ptr %1, align 8
  br label %bb3

bb2:                                              ; preds = %start
  store ptr @alloc_47c8330ffe7a09bc00d165d03facdeb6, ptr %shape, align 8
  %2 = getelementptr inbounds i8, ptr %shape, i64 8
  store ptr @vtable.1, ptr %2, align 8
  br label %bb3

bb3:                                              ; preds = %bb2, %bb1
  call void @llvm.lifetime.start.p0(ptr %functions)
  %3 = getelementptr inbounds nuw ptr, ptr %functions, i64 0
  store ptr @_RNvYNCNvCsbX44S6ylP1R_5calls5entry0INtNtNtCsjhweFKGJl7r_4core3ops8function6FnOnceTmEE9call_onceB6_, ptr %3, align 8
  %4 = getelementptr inbounds nuw ptr, ptr %functions, i64 1
  store ptr @_RNvYNCNvCsbX44S6ylP1R_5calls5entrys_0INtNtNtCsjhweFKGJl7r_4core3ops8function6FnOnceTmEE9call_onceB6_, ptr %4, align 8
  call void @llvm.lifetime.start.p0(ptr %low)
  store i32 0, ptr %low, align 4
  call void @llvm.lifetime.start.p0(ptr %high)
  store i32 0, ptr %high, align 4
  call void @"curium.asm|mov.b64 {$0, $1}, $2;|=r,=r,l|pure"(ptr noundef %low, ptr noundef %high, i64 noundef %n) #6
  %_18 = urem i64 %n, 2
  %_19 = icmp ult i64 %_18, 2
  br i1 %_19, label %bb5, label %panic

bb5:                                              ; preds = %bb3
  %5 = getelementptr inbounds nuw ptr, ptr %functions, i64 %_18
  %_17 = load ptr, ptr %5, align 8, !nonnull !11, !noundef !11
  %6 = load ptr, ptr %shape, align 8, !nonnull !11, !noundef !11
  %7 = getelementptr inbounds i8, ptr %shape, i64 8
  %8 = load ptr, ptr %7, align 8, !nonnull !11, !align !13, !noundef !11
  %9 = getelementptr inbounds i8, ptr %8, i64 24
  %10 = load ptr, ptr %9, align 8, !invariant.load !11, !nonnull !11
  %_20 = call noundef i32 %10(ptr noundef %6) #6
  %_16 = call noundef i32 %_17(i32 noundef %_20) #6
  %_21 = load i32, ptr %low, align 4, !noundef !11
  %_15 = add i32 %_16, %_21
  %_22 = load i32, ptr %high, align 4, !noundef !11
  %_14 = add i32 %_15, %_22
  %_13 = call noundef i32 @"curium.atomicrmw|add|device|monotonic|u32"(ptr noundef %y, i32 noundef %_14) #6
  switch i64 %n, label %bb9 [
    i64 0, label %bb12
    i64 1, label %bb11
    i64 2, label %bb10
  ]

panic:                                            ; preds = %bb3
  call void @_RNvNtCsjhweFKGJl7r_4core9panicking18panic_bounds_check(i64 noundef %_18, i64 noundef 2, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) @alloc_5401e60f65ec2814b8a5f8b99430c795) #7
  unreachable

bb9:                                              ; preds = %bb5
  %_26 = getelementptr inbounds nuw i32, ptr %y, i64 2
  %11 = mul nuw nsw i64 4, %n
  call void @llvm.memmove.p0.p0.i64(ptr align 4 %_26, ptr align 4 %y, i64 %11, i1 false)
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
  %_23 = call i32 @llvm.ctpop.i32(i32 -1)
  %_24 = getelementptr inbounds nuw i32, ptr %y, i64 1
  store i32 %_23, ptr %_24, align 4
  br label %bb12
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #2

; Function Attrs: convergent inlinehint nounwind
define internal noundef i32 @_RNvYNCNvCsbX44S6ylP1R_5calls5entry0INtNtNtCsjhweFKGJl7r_4core3ops8function6FnOnceTmEE9call_onceB6_(i32 noundef %0) unnamed_addr #3 !guid !14 {
start:
  %_2 = alloca [4 x i8], align 4
  %_1 = alloca [0 x i8], align 1
  store i32 %0, ptr %_2, align 4
  %1 = load i32, ptr %_2, align 4, !noundef !11
  %_0 = call noundef i32 @_RNCNvCsbX44S6ylP1R_5calls5entry0B3_(ptr noalias nofree noundef nonnull readonly captures(address, read_provenance) %_1, i32 noundef %1) #6
  ret i32 %_0
}

; Function Attrs: convergent inlinehint nounwind
define internal noundef i32 @_RNvYNCNvCsbX44S6ylP1R_5calls5entrys_0INtNtNtCsjhweFKGJl7r_4core3ops8function6FnOnceTmEE9call_onceB6_(i32 noundef %0) unnamed_addr #3 !guid !15 {
start:
  %_2 = alloca [4 x i8], align 4
  %_1 = alloca [0 x i8], align 1
  store i32 %0, ptr %_2, align 4
  %1 = load i32, ptr %_2, align 4, !noundef !11
  %_0 = call noundef i32 @_RNCNvCsbX44S6ylP1R_5calls5entrys_0B3_(ptr noalias nofree noundef nonnull readonly captures(address, read_provenance) %_1, i32 noundef %1) #6
  ret i32 %_0
}

; Function Attrs: convergent nounwind
declare void @"curium.asm|mov.b64 {$0, $1}, $2;|=r,=r,l|pure"(ptr noundef, ptr noundef, i64 noundef) unnamed_addr #1

; Function Attrs: convergent nounwind
declare noundef i32 @"curium.atomicrmw|add|device|monotonic|u32"(ptr noundef, i32 noundef) unnamed_addr #1

; Function Attrs: cold convergent minsize noinline noreturn nounwind optsize
declare void @_RNvNtCsjhweFKGJl7r_4core9panicking18panic_bounds_check(i64 noundef, i64 noundef, ptr noalias nofree noundef readonly align 8 captures(address, read_provenance) dereferenceable(24)) unnamed_addr #4

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.memmove.p0.p0.i64(ptr writeonly captures(none), ptr readonly captures(none), i64, i1 immarg) #2

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #2

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i32 @llvm.ctpop.i32(i32) #5

; Function Attrs: convergent inlinehint nounwind
define internal noundef i32 @_RNCNvCsbX44S6ylP1R_5calls5entrys_0B3_(ptr noalias nofree noundef nonnull readonly captures(address, read_provenance) %_1, i32 noundef %x) unnamed_addr #3 !guid !16 {
start:
  %_0 = mul i32 %x, 2
  ret i32 %_0
}

; Function Attrs: convergent inlinehint nounwind
define internal noundef i32 @_RNCNvCsbX44S6ylP1R_5calls5entry0B3_(ptr noalias nofree noundef nonnull readonly captures(address, read_provenance) %_1, i32 noundef %x) unnamed_addr #3 !guid !17 {
start:
  %_0 = add i32 %x, 1
  ret i32 %_0
}

; Function Attrs: convergent nounwind
define internal noundef i32 @_RNvXCsbX44S6ylP1R_5callsNtB2_6SquareNtB2_5Shape4area(ptr noalias nofree noundef readonly align 4 captures(address, read_provenance) dereferenceable(4) %self) unnamed_addr #1 !guid !18 {
start:
  %_2 = load i32, ptr %self, align 4, !noundef !11
  %_0 = mul i32 %_2, %_2
  ret i32 %_0
}

attributes #0 = { convergent noreturn nounwind "target-cpu"="sm_70" "target-features"="+ptx70" }
attributes #1 = { convergent nounwind "target-cpu"="sm_70" "target-features"="+ptx70" }
attributes #2 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #3 = { convergent inlinehint nounwind "target-cpu"="sm_70" "target-features"="+ptx70" }
attributes #4 = { cold convergent minsize noinline noreturn nounwind optsize "target-cpu"="sm_70" "target-features"="+ptx70" }
attributes #5 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #6 = { nounwind }
attributes #7 = { noreturn nounwind }

!llvm.ident = !{!7}
!llvm.module.flags = !{!8}

!0 = !{i64 4144667590967056641}
!1 = !{i64 1007062606778472050}
!2 = !{i64 -5959504614797818277}
!3 = !{i64 6255766410474049764}
!4 = !{i64 8320631054145266250}
!5 = !{i64 1113785400443655658}
!6 = !{i64 8423273892649754403}
!7 = !{!"rustc version 1.100.0-beta.7 (fd8e211ae 2026-10-17)"}
!8 = !{i32 8, !"PIC Level", i32 2}
!9 = !{i64 981225273915827042}
!10 = !{i64 -8540622724585823636}
!11 = !{}
!12 = !{i64 -7488818633829524404}
!13 = !{i64 8}
!14 = !{i64 -2241230884878475469}
!15 = !{i64 1846051737259369269}
!16 = !{i64 5262490415806252351}
!17 = !{i64 -6576240853344201696}
!18 = !{i64 6471941591793712990}

; ModuleID = 'llvm-link'
source_filename = "llvm-link"
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@_RNvNvCskVLJmUDtH0q_6kernel5entry4TILE = internal global [256 x i8] undef, section ".curium.shared", align 4
@curium.meta.reverse = constant [124 x i8] c"\01\00\00\00\01\00\00\00@\00\00\00\01\00\00\00\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\02\00\00\00\11\00\00\00\12\00\00\00\02\00\00\00r\00\00\00\08\00\00\00\08\00\00\00v\00\00\00\08\00\00\00\08\00\00\00_\00\00\00\00\00\00\00\00\00\00\00w\00\00\00\08\00\00\00\08\00\00\00_\00\00\00\00\00\00\00\00\00\00\00_\00\00\00\00\00\00\00\00\00\00\00", section ".curium.kernel", align 4

; Function Attrs: convergent noreturn nounwind
define void @_RNvCs9wFQrvczXsK_7___rustc17rust_begin_unwind(ptr noalias noundef readonly align 8 captures(address, read_provenance) dereferenceable(24) %_1) unnamed_addr #0 {
start:
  br label %bb1

bb1:                                              ; preds = %bb1, %start
  br label %bb1
}

; Function Attrs: convergent nounwind
define void @curium.kernel.reverse(ptr noundef %x, i64 noundef %n, ptr noundef %y) unnamed_addr #1 {
start:
  %_8 = alloca [4 x i8], align 4
  %_7 = call noundef i32 @curium.llvm.nvvm.read.ptx.sreg.tid.x() #3
  %index = zext i32 %_7 to i64
  call void @llvm.lifetime.start.p0(ptr %_8)
  %_9 = icmp ult i64 %index, %n
  br i1 %_9, label %bb2, label %bb3

bb3:                                              ; preds = %start
  store i32 0, ptr %_8, align 4
  br label %bb4

bb2:                                              ; preds = %start
  %_10 = getelementptr inbounds nuw i32, ptr %x, i64 %index
  %0 = load i32, ptr %_10, align 4, !noundef !2
  store i32 %0, ptr %_8, align 4
  br label %bb4

bb4:                                              ; preds = %bb2, %bb3
  %_11 = getelementptr inbounds nuw i32, ptr @_RNvNvCskVLJmUDtH0q_6kernel5entry4TILE, i64 %index
  %1 = load i32, ptr %_8, align 4, !noundef !2
  store i32 %1, ptr %_11, align 4
  call void @llvm.lifetime.end.p0(ptr %_8)
  call void @curium.llvm.nvvm.barrier.cta.sync.aligned.all(i32 noundef 0) #3
  %_15 = sub i64 63, %index
  %_14 = getelementptr inbounds nuw i32, ptr @_RNvNvCskVLJmUDtH0q_6kernel5entry4TILE, i64 %_15
  %_13 = load i32, ptr %_14, align 4, !noundef !2
  %_16 = getelementptr inbounds nuw i32, ptr %y, i64 %index
  store i32 %_13, ptr %_16, align 4
  ret void
}

; Function Attrs: convergent nounwind
declare noundef i32 @curium.llvm.nvvm.read.ptx.sreg.tid.x() unnamed_addr #1

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.start.p0(ptr captures(none)) #2

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: readwrite)
declare void @llvm.lifetime.end.p0(ptr captures(none)) #2

; Function Attrs: convergent nounwind
declare void @curium.llvm.nvvm.barrier.cta.sync.aligned.all(i32 noundef) unnamed_addr #1

attributes #0 = { convergent noreturn nounwind "target-cpu"="sm_70" "target-features"="+ptx70" }
attributes #1 = { convergent nounwind "target-cpu"="sm_70" "target-features"="+ptx70" }
attributes #2 = { nocallback nofree nosync nounwind willreturn memory(argmem: readwrite) }
attributes #3 = { nounwind }

!llvm.ident = !{!0}
!llvm.module.flags = !{!1}

!0 = !{!"rustc version 1.97.1 (8bab26f4f 2026-07-14)"}
!1 = !{i32 8, !"PIC Level", i32 2}
!2 = !{}

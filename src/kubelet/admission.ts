import type { Pod } from '../pods/index.ts';
import { appArmorProblem, sysctlProblem } from '../runtime/index.ts';
import type { KubeletSettings } from './settings.ts';

/**
 * A pod that `lives-here` was admitted by an earlier kubelet since the machine was started, and has its sandbox: what
 * became of the node's labels or resources meanwhile is no reason to throw it out.
 */
export type PodStanding = 'new' | 'lives-here';

/** What the pod asks of the kernel that this node does not give. */
export function kernelProblems(pod: Pod, { kernel }: Pick<KubeletSettings, 'kernel'>) {
  if (kernel === undefined) return {};
  return {
    sysctlProblem: sysctlProblem(pod, kernel.sysctls),
    appArmorProblem: appArmorProblem(pod, kernel.appArmor),
  };
}

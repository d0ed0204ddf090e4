import type { Pod } from '../pods/index.ts';
import { appArmorProblem, sysctlProblem } from '../runtime/index.ts';
import type { KubeletSettings } from './settings.ts';

/** What the pod asks of the kernel that this node does not give. */
export function kernelProblems(pod: Pod, { kernel }: Pick<KubeletSettings, 'kernel'>) {
  if (kernel === undefined) return {};
  return {
    sysctlProblem: sysctlProblem(pod, kernel.sysctls),
    appArmorProblem: appArmorProblem(pod, kernel.appArmor),
  };
}

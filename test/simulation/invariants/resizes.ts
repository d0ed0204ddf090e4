import type { LinuxContainerResources } from '../../../src/cri/index.ts';
import { nodeSize } from '../resizes/resize-rest.ts';
import type { Rule, RuleScene } from './scene.ts';

const rule = 'containers that run are never given more than the node has';
const mebibyte = 2 ** 20;

interface Request {
  readonly containerId?: string;
  readonly linux?: Partial<LinuxContainerResources>;
}

/**
 * The containers never have more resources than the node, computed from the calls to the runtime: a
 * container must release resources before another one gets them.
 */
export function neverMoreThanTheNode({ runtime, isUncertain, report }: RuleScene): Rule {
  const look = (containerId: string, told: Partial<LinuxContainerResources> | undefined, starts: boolean) => {
    // The rule is suspended after aborted calls, because it is unknown whether and when they take
    // effect.
    if (isUncertain()) return;
    const all = runtime.containers().filter(({ id, running }) => running || (starts && id === containerId));
    const sum = (amount: (resources: Partial<LinuxContainerResources>) => number) =>
      all.reduce(
        (total, { id, resources }) =>
          total + Math.max(0, amount(id === containerId ? { ...resources, ...told } : (resources ?? {}))),
        0,
      );
    const cpu = sum(({ cpuQuota = 0n }) => Number(cpuQuota)) / 100;
    const memory = sum(({ memoryLimitInBytes = 0n }) => Number(memoryLimitInBytes)) / mebibyte;
    if (cpu > nodeSize.milliCpu) report(rule, `${cpu} millicores`);
    if (memory > nodeSize.mebibytes) report(rule, `${memory} MiB`);
  };
  return {
    calling(method, request) {
      const { containerId = '', linux } = (request ?? {}) as Request;
      if (method === 'updateContainerResources') look(containerId, linux, false);
      if (method === 'startContainer') look(containerId, undefined, true);
    },
  };
}

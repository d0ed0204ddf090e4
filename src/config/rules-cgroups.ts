import { formatDurationMs } from '../lib/index.ts';
import { keyPath } from './findings.ts';
import type { Rule } from './validate.ts';

const systemCgroups: Rule = {
  reads: ['systemCgroups', 'cgroupRoot'],
  check({ config }, report) {
    if (config.systemCgroups !== '' && config.cgroupRoot === '') {
      report.problem('systemCgroups', 'needs cgroupRoot, which is empty');
    }
    if (/^\/+$/.test(config.systemCgroups)) {
      report.problem('systemCgroups', 'must not be the root: what lies there is what is to be moved');
    }
  },
};

const kubeletCgroups: Rule = {
  reads: ['kubeletCgroups', 'kubeReservedCgroup'],
  check({ config }, report) {
    const { kubeletCgroups: own, kubeReservedCgroup: reserved } = config;
    if (own !== '' && reserved !== '' && !own.startsWith(reserved)) {
      report.warning(
        'kubeletCgroups',
        `is not inside kubeReservedCgroup (${reserved}) and so is not held to kubeReserved`,
      );
    }
  },
};

const quotaPeriod: Rule = {
  reads: ['cpuCFSQuotaPeriod', 'featureGates'],
  check({ config, gates }, report) {
    if (config.cpuCFSQuotaPeriodMs === 100 || gates.enabled('CustomCPUCFSQuotaPeriod')) return;
    const current = formatDurationMs(config.cpuCFSQuotaPeriodMs);
    report.problem(
      'cpuCFSQuotaPeriod',
      `must be 100ms while the feature gate CustomCPUCFSQuotaPeriod is off: current value is ${current}`,
    );
  },
};

const memoryQos: Rule = {
  reads: ['memoryReservationPolicy', 'featureGates'],
  check({ config, gates }, report) {
    if (config.memoryReservationPolicy !== 'TieredReservation' || gates.enabled('MemoryQoS')) return;
    report.problem(
      'memoryReservationPolicy',
      'TieredReservation needs the feature gate MemoryQoS, which is off',
    );
  },
};

const swap: Rule = {
  reads: ['failSwapOn', 'memorySwap'],
  check({ config }, report) {
    if (config.failSwapOn && config.memorySwap.swapBehavior === 'LimitedSwap') {
      report.warning(
        'memorySwap.swapBehavior',
        'LimitedSwap has no effect while failSwapOn refuses hosts with swap',
      );
    }
  },
};

const crashLoop: Rule = {
  reads: ['crashLoopBackOff', 'featureGates'],
  check({ config, gates }, report) {
    const { maxContainerRestartPeriodMs } = config.crashLoopBackOff;
    if (maxContainerRestartPeriodMs === undefined || gates.enabled('KubeletCrashLoopBackOffMax')) return;
    const field = 'crashLoopBackOff.maxContainerRestartPeriod';
    report.problem(field, 'needs the feature gate KubeletCrashLoopBackOffMax, which is off');
  },
};

const idsPerPod: Rule = {
  reads: ['userNamespaces'],
  check({ config }, report) {
    const ids = config.userNamespaces?.idsPerPod;
    const unit = 65536;
    if (ids === undefined || (ids >= unit && ids % unit === 0 && ids < 2 ** 32)) return;
    report.problem(
      'userNamespaces.idsPerPod',
      `must be a multiple of ${unit} below ${2 ** 32}: current value is ${ids}`,
    );
  },
};

const qosReserved: Rule = {
  reads: [],
  check({ config }, report) {
    for (const [resource, share] of Object.entries(config.qosReserved)) {
      const field = keyPath('qosReserved', resource);
      if (resource !== 'memory') report.problem(field, 'must not be reserved: only memory can be');
      const percent = /^(\d{1,3})%$/.exec(share)?.[1];
      if (percent === undefined || Number(percent) > 100) {
        report.problem(field, `must be from 0% to 100%: current value is ${JSON.stringify(share)}`);
      }
    }
  },
};

/** Matches the sysctls that the kernel isolates per pod; a pod may set no others. */
const namespacedSysctl =
  /^(kernel\.(sem|shm|shmall|shmmax|shmmni|shm_rmid_forced|msg|msgmax|msgmnb|msgmni)$|net\.|fs\.mqueue\.)/;
const sysctlPattern = /^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]$/;

const sysctls: Rule = {
  reads: ['allowedUnsafeSysctls'],
  check({ config }, report) {
    config.allowedUnsafeSysctls.forEach((sysctl, index) => {
      const field = keyPath('allowedUnsafeSysctls', index);
      const current = `current value is ${JSON.stringify(sysctl)}`;
      if (sysctl.length > 253 || !sysctlPattern.test(sysctl)) {
        report.problem(field, `must be the name of a sysctl, perhaps with * at its end: ${current}`);
      } else if (!namespacedSysctl.test(dotted(sysctl).replace(/\*.*/s, ''))) {
        const allowed = 'kernel.sem, kernel.shm*, kernel.msg*, fs.mqueue.* and net.*';
        report.problem(
          field,
          `must be a sysctl that each pod has of its own, which are ${allowed}: ${current}`,
        );
      }
    });
  },
};

/**
 * Returns a sysctl name with dots. If it is written with slashes, its dots belong to the name of an
 * interface.
 */
function dotted(sysctl: string): string {
  const separator = /[./]/.exec(sysctl)?.[0];
  return separator === '/' ? sysctl.replace(/[./]/g, (mark) => (mark === '/' ? '.' : '/')) : sysctl;
}

export const cgroupRules: readonly Rule[] = [
  systemCgroups,
  kubeletCgroups,
  quotaPeriod,
  memoryQos,
  swap,
  crashLoop,
  idsPerPod,
  qosReserved,
  sysctls,
];

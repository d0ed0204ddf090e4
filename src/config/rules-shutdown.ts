import { formatDurationMs } from '../lib/index.ts';
import type { Rule } from './validate.ts';

const names = ['shutdownGracePeriod', 'shutdownGracePeriodCriticalPods'] as const;

const lengths: Rule = {
  reads: names,
  check({ config }, report) {
    for (const name of names) {
      const ms = config[`${name}Ms`];
      if (ms === 0 || ms >= 1000) continue;
      report.problem(name, `must be 0s or at least 1s: current value is ${formatDurationMs(ms)}`);
    }
    const { shutdownGracePeriodMs: total, shutdownGracePeriodCriticalPodsMs: critical } = config;
    if (critical > total) {
      const must = `must not be longer than shutdownGracePeriod (${formatDurationMs(total)})`;
      report.problem(
        'shutdownGracePeriodCriticalPods',
        `${must}: current value is ${formatDurationMs(critical)}`,
      );
    }
  },
};

const gate: Rule = {
  reads: [...names, 'featureGates'],
  check({ config, gates }, report) {
    if (gates.enabled('GracefulNodeShutdown')) return;
    for (const name of names) {
      if (config[`${name}Ms`] > 0)
        report.problem(name, 'needs the feature gate GracefulNodeShutdown, which is off');
    }
  },
};

const byPriority: Rule = {
  reads: [...names, 'shutdownGracePeriodByPodPriority', 'featureGates'],
  check({ config, gates }, report) {
    const field = 'shutdownGracePeriodByPodPriority';
    if (config[field].length === 0) return;
    if (!gates.enabled('GracefulNodeShutdownBasedOnPodPriority')) {
      report.problem(field, 'needs the feature gate GracefulNodeShutdownBasedOnPodPriority, which is off');
    }
    if (names.some((name) => config[`${name}Ms`] > 0)) {
      report.problem(field, `must not be used together with ${names.join(' or ')}`);
    }
  },
};

export const shutdownRules: readonly Rule[] = [lengths, gate, byPriority];

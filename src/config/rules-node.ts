import { isIP } from 'node:net';
import { formatDurationMs } from '../lib/index.ts';
import { fieldPath, keyPath } from './findings.ts';
import {
  checkCleanPath,
  checkLabelValue,
  checkNodeLabel,
  checkQualifiedName,
  isDnsSubdomain,
} from './text-checks.ts';
import type { Rule, RuleReport, ValidatedConfig } from './validate.ts';

/** Rules about the node and its flags. A flag is reported in the same way as a field. */

const noRunOnce: Rule = {
  reads: ['runOnce'],
  check({ config }, report) {
    if (config.runOnce) report.problem('runOnce', 'must be false: running once is no longer possible');
  },
};

const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

const taints: Rule = {
  reads: ['registerWithTaints'],
  check({ config }, report) {
    const paths = new Set<string>();
    config.registerWithTaints.forEach((taint, index) => {
      const path = keyPath('registerWithTaints', index);
      checkTaint(taint, path, report);
      const identity = `${taint.key}:${taint.effect}`;
      if (paths.has(identity)) report.problem(path, `must not be given twice: ${identity}`);
      paths.add(identity);
    });
  },
};

type Taint = ValidatedConfig['config']['registerWithTaints'][number];

function checkTaint(taint: Taint, path: string, report: RuleReport): void {
  const key = checkQualifiedName(taint.key);
  if (key !== undefined)
    report.problem(fieldPath(path, 'key'), `${key}: current value is ${JSON.stringify(taint.key)}`);
  const value = checkLabelValue(taint.value);
  if (value !== undefined) {
    report.problem(fieldPath(path, 'value'), `${value}: current value is ${JSON.stringify(taint.value)}`);
  }
  if (!effects.includes(taint.effect)) {
    const current = JSON.stringify(taint.effect);
    report.problem(
      fieldPath(path, 'effect'),
      `must be one of ${effects.join(', ')}: current value is ${current}`,
    );
  }
  if (taint.timeAdded !== undefined) report.problem(fieldPath(path, 'timeAdded'), 'must not be given');
}

const labels: Rule = {
  reads: [],
  check({ flags }, report) {
    for (const [key, value] of Object.entries(flags.nodeLabels)) {
      const keyProblem = checkQualifiedName(key) ?? checkNodeLabel(key);
      if (keyProblem !== undefined) report.problem('--node-labels', `${JSON.stringify(key)} ${keyProblem}`);
      const valueProblem = checkLabelValue(value);
      if (valueProblem !== undefined) {
        report.problem(
          '--node-labels',
          `${key}: the value ${valueProblem}: current value is ${JSON.stringify(value)}`,
        );
      }
    }
  },
};

const nodeName: Rule = {
  reads: [],
  check({ flags }, report) {
    const name = flags.hostnameOverride;
    if (name !== '' && !isDnsSubdomain(name)) {
      report.problem('--hostname-override', `must be a DNS name: current value is ${JSON.stringify(name)}`);
    }
  },
};

const nodeAddresses: Rule = {
  reads: [],
  check({ flags }, report) {
    const ips = flags.nodeIps;
    if (ips.length < 2) return;
    if (ips.length > 2 || isIP(ips[0] ?? '') === isIP(ips[1] ?? '')) {
      report.problem(
        '--node-ip',
        `must be one address or one of each family: current value is ${ips.join(',')}`,
      );
    } else if (ips.some((ip) => ip === '0.0.0.0' || ip === '::')) {
      report.problem(
        '--node-ip',
        `must not name two addresses when one is 0.0.0.0 or ::: current value is ${ips.join(',')}`,
      );
    }
  },
};

const directories: Rule = {
  reads: [],
  check({ flags }, report) {
    const root = flags.rootDir.length > 1 ? flags.rootDir.replace(/\/$/, '') : flags.rootDir;
    const must = checkCleanPath(root);
    if (must !== undefined) {
      report.problem('--root-dir', `must be ${must}: current value is ${JSON.stringify(flags.rootDir)}`);
    }
  },
};

const consistency: Rule = {
  reads: [],
  check({ flags }, report) {
    if (flags.exitOnLockContention && flags.lockFile === '') {
      report.problem('--exit-on-lock-contention', 'needs --lock-file');
    }
    const { imageCredentialProviderConfig: file, imageCredentialProviderBinDir: directory } = flags;
    if ((file === '') !== (directory === '')) {
      const [given, missing] = file === '' ? ['bin-dir', 'config'] : ['config', 'bin-dir'];
      report.problem(`--image-credential-provider-${given}`, `needs --image-credential-provider-${missing}`);
    }
    if (flags.bootstrapKubeconfig !== '' && flags.kubeconfig === '') {
      report.problem('--bootstrap-kubeconfig', 'needs --kubeconfig, the file to write afterwards');
    }
  },
};

export const nodeRules: readonly Rule[] = [
  noRunOnce,
  taints,
  labels,
  nodeName,
  nodeAddresses,
  directories,
  consistency,
];

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

import { didYouMean, tryParseBool, tryParseQuantity } from '../lib/index.ts';
import type { GateName } from './feature-gate-table.ts';
import { fieldPath, keyPath } from './findings.ts';
import type { Rule, RuleReport, ValidatedConfig } from './validate.ts';

const reservableResources = ['cpu', 'memory', 'ephemeral-storage', 'pid'];

const reservations: Rule = {
  reads: [],
  check({ config }, report) {
    for (const name of ['systemReserved', 'kubeReserved'] as const) {
      for (const [resource, amount] of Object.entries(config[name])) {
        checkReservation(keyPath(name, resource), resource, amount, report);
      }
    }
  },
};

function checkReservation(field: string, resource: string, amount: string, report: RuleReport): void {
  if (!reservableResources.includes(resource)) {
    const hint = didYouMean(resource, reservableResources);
    report.problem(field, `must not be reserved: only ${reservableResources.join(', ')} can be${hint}`);
  }
  const quantity = tryParseQuantity(amount);
  if (quantity === undefined || quantity.nanos < 0n) {
    report.problem(field, `must be a quantity of 0 or more: current value is ${JSON.stringify(amount)}`);
  }
}

const reservedCpus: Rule = {
  reads: ['reservedSystemCPUs', 'systemReservedCgroup', 'kubeReservedCgroup'],
  check({ config }, report) {
    if (config.reservedSystemCPUs === '') return;
    for (const name of ['systemReservedCgroup', 'kubeReservedCgroup'] as const) {
      if (config[name] !== '') report.problem('reservedSystemCPUs', `must not be used together with ${name}`);
    }
  },
};

/**
 * The values of enforceNodeAllocatable, each with the field for the cgroup on which it is enforced.
 */
const enforcements: ReadonlyMap<string, 'systemReservedCgroup' | 'kubeReservedCgroup' | undefined> = new Map([
  ['none', undefined],
  ['pods', undefined],
  ['system-reserved', 'systemReservedCgroup'],
  ['system-reserved-compressible', 'systemReservedCgroup'],
  ['kube-reserved', 'kubeReservedCgroup'],
  ['kube-reserved-compressible', 'kubeReservedCgroup'],
]);

const enforcement: Rule = {
  reads: ['enforceNodeAllocatable', 'systemReservedCgroup', 'kubeReservedCgroup', 'cgroupsPerQOS'],
  check({ config }, report) {
    const chosen = config.enforceNodeAllocatable;
    chosen.forEach((name, index) => {
      const field = keyPath('enforceNodeAllocatable', index);
      if (chosen.indexOf(name) !== index) report.problem(field, `must not be listed twice: ${name}`);
      else if (!enforcements.has(name)) reportUnknown(field, name, report);
      else if (name === 'none') reportNotAlone(field, chosen, report);
      else checkEnforcement(field, name, config, report);
    });
    for (const name of ['system-reserved', 'kube-reserved']) {
      if (chosen.includes(name) && chosen.includes(`${name}-compressible`)) {
        report.problem('enforceNodeAllocatable', `must not hold both ${name} and ${name}-compressible`);
      }
    }
  },
};

function reportUnknown(field: string, name: string, report: RuleReport): void {
  const names = [...enforcements.keys()];
  const current = `current value is ${JSON.stringify(name)}`;
  report.problem(field, `must be one of ${names.join(', ')}${didYouMean(name, names)}: ${current}`);
}

function reportNotAlone(field: string, chosen: readonly string[], report: RuleReport): void {
  if (chosen.length > 1) report.problem(field, 'none must stand alone');
}

function checkEnforcement(
  field: string,
  name: string,
  config: ValidatedConfig['config'],
  report: RuleReport,
): void {
  const cgroup = enforcements.get(name);
  if (cgroup !== undefined && config[cgroup] === '')
    report.problem(field, `${name} needs ${cgroup}, which is empty`);
  if (!config.cgroupsPerQOS)
    report.problem(field, `${name} needs cgroupsPerQOS to be true: current value is false`);
}

const reservedMemory: Rule = {
  reads: ['reservedMemory'],
  check({ config }, report) {
    const cpus = new Set<string>();
    config.reservedMemory.forEach(({ numaNode, limits }, index) => {
      for (const [type, amount] of Object.entries(limits)) {
        const field = keyPath(fieldPath(keyPath('reservedMemory', index), 'limits'), type);
        if (type !== 'memory' && !type.startsWith('hugepages-')) {
          report.problem(field, 'must be memory or hugepages-<size>');
        }
        if (amount.nanos <= 0n) report.problem(field, 'must be more than 0');
        const identity = `${numaNode}:${type}`;
        if (cpus.has(identity)) report.problem(field, `must not be given twice for NUMA node ${numaNode}`);
        cpus.add(identity);
      }
    });
  },
};

interface Options {
  readonly names: ReadonlyMap<string, GateName | undefined>;
  readonly isValue: (name: string, value: string) => string | undefined;
}

const switchOption = (_name: string, value: string) =>
  tryParseBool(value) === undefined ? 'true or false' : undefined;

/** The options of the static CPU policy, with the feature gate that each requires. */
const cpuOptions: Options = {
  names: new Map<string, GateName | undefined>([
    ['full-pcpus-only', undefined],
    ['strict-cpu-reservation', undefined],
    ['prefer-align-cpus-by-uncorecache', undefined],
    ['distribute-cpus-across-numa', 'CPUManagerPolicyBetaOptions'],
    ['align-by-socket', 'CPUManagerPolicyAlphaOptions'],
    ['distribute-cpus-across-cores', 'CPUManagerPolicyAlphaOptions'],
  ]),
  isValue: switchOption,
};

/** The number of NUMA nodes that is supported without the option max-allowable-numa-nodes. */
const leastNumaNodes = 8;
const topologyOptions: Options = {
  names: new Map([
    ['prefer-closest-numa-nodes', undefined],
    ['max-allowable-numa-nodes', undefined],
  ]),
  isValue: (name, value) => {
    if (name !== 'max-allowable-numa-nodes') return switchOption(name, value);
    return /^\d{1,6}$/.test(value) && Number(value) >= leastNumaNodes
      ? undefined
      : `a whole number from ${leastNumaNodes} up`;
  },
};

function checkOptions(
  field: 'cpuManagerPolicyOptions' | 'topologyManagerPolicyOptions',
  options: Options,
): Rule {
  return {
    reads: ['featureGates'],
    check({ config, gates }, report) {
      for (const [name, value] of Object.entries(config[field])) {
        const path = keyPath(field, name);
        const gate = options.names.get(name);
        const must = options.isValue(name, value);
        if (!options.names.has(name)) {
          report.problem(path, `is not a known option${didYouMean(name, options.names.keys())}`);
        } else if (gate !== undefined && !gates.enabled(gate)) {
          report.problem(path, `needs the feature gate ${gate}, which is off`);
        } else if (must !== undefined) {
          report.problem(path, `must be ${must}: current value is ${JSON.stringify(value)}`);
        }
      }
    },
  };
}

/** Pairs of CPU policy options that cannot be combined. */
const cpuConflicts = [
  ['full-pcpus-only', 'distribute-cpus-across-cores'],
  ['distribute-cpus-across-numa', 'distribute-cpus-across-cores'],
  ['prefer-align-cpus-by-uncorecache', 'distribute-cpus-across-cores'],
  ['prefer-align-cpus-by-uncorecache', 'distribute-cpus-across-numa'],
] as const;

const cpuManager: Rule = {
  reads: ['cpuManagerPolicy', 'cpuManagerPolicyOptions', 'topologyManagerPolicy'],
  check({ config }, report) {
    const options = config.cpuManagerPolicyOptions;
    const isOn = (name: string) => Object.hasOwn(options, name) && tryParseBool(options[name] ?? '') === true;
    if (config.cpuManagerPolicy === 'none' && Object.keys(options).length > 0) {
      report.problem('cpuManagerPolicyOptions', 'need cpuManagerPolicy to be static: current value is none');
    }
    for (const [policy, other] of cpuConflicts) {
      if (isOn(policy) && isOn(other))
        report.problem('cpuManagerPolicyOptions', `must not have both ${policy} and ${other}`);
    }
    if (isOn('align-by-socket') && config.topologyManagerPolicy === 'single-numa-node') {
      report.problem(
        'cpuManagerPolicyOptions',
        'align-by-socket must not be used with the topology policy single-numa-node',
      );
    }
  },
};

export const allocationRules: readonly Rule[] = [
  reservations,
  reservedCpus,
  enforcement,
  reservedMemory,
  checkOptions('cpuManagerPolicyOptions', cpuOptions),
  checkOptions('topologyManagerPolicyOptions', topologyOptions),
  cpuManager,
];

import { evictionThresholds, type LoadedConfig } from '../../config/index.ts';
import { quantityMilliValue, quantityValue } from '../../lib/index.ts';
import { addResources, isHugePages, readResources } from '../../pods/index.ts';
import { cpuCount, type ExclusiveResourceSettings } from '../../resources/index.ts';

type Config = LoadedConfig['config'];

/**
 * Returns the settings of the CPU and memory managers; undefined if containers get no exclusive
 * resources, which is the default.
 */
export function exclusiveResourceSettings(
  { config, gates }: Pick<LoadedConfig, 'config' | 'gates'>,
  memoryBytes: number,
): ExclusiveResourceSettings | undefined {
  const { topologyManagerPolicy: policy, topologyManagerScope: scope } = config;
  const cpu = config.cpuManagerPolicy === 'static' ? cpuSettings(config, gates) : undefined;
  const memory = config.memoryManagerPolicy === 'Static' ? memorySettings(config, memoryBytes) : undefined;
  const options = config.topologyManagerPolicyOptions;
  const topology = policy === 'none' ? undefined : { policy, scope, options };
  return cpu === undefined && memory === undefined && topology === undefined
    ? undefined
    : { cpu, memory, topology };
}

function cpuSettings(
  config: Config,
  gates: LoadedConfig['gates'],
): NonNullable<ExclusiveResourceSettings['cpu']> {
  const amount = reservedOf(config).get('cpu');
  const cores = amount === undefined ? 0 : Math.ceil(Number(quantityMilliValue(amount)) / 1_000);
  const reservedCpus = config.reservedSystemCPUs;
  return {
    reservedCpus,
    reservedCount: reservedCpus === '' ? cores : cpuCount(reservedCpus),
    options: config.cpuManagerPolicyOptions,
    reconcileMs: config.cpuManagerReconcilePeriodMs,
    quota: gates.enabled('DisableCPUQuotaWithExclusiveCPUs') ? 'lifted' : 'kept',
  };
}

/**
 * Returns the memory manager settings. The memory reserved per NUMA node must add up exactly to the
 * reserved amount of the node.
 */
function memorySettings(
  config: Config,
  memoryBytes: number,
): NonNullable<ExclusiveResourceSettings['memory']> {
  const required = new Map(
    [...reservedOf(config)].flatMap(([name, amount]) =>
      name === 'memory' || isHugePages(name) ? [[name, quantityValue(amount)] as const] : [],
    ),
  );
  const hard = evictionThresholds(config).find(
    ({ kind, signal }) => kind === 'hard' && signal === 'memory.available',
  );
  const evicted =
    hard === undefined
      ? 0n
      : 'quantity' in hard.value
        ? quantityValue(hard.value.quantity)
        : BigInt(Math.floor((memoryBytes * hard.value.percent) / 100));
  if (evicted > 0n) required.set('memory', (required.get('memory') ?? 0n) + evicted);
  const reserved = config.reservedMemory.map(({ numaNode, limits }) => ({
    numaNode,
    limits: new Map(Object.entries(limits).map(([name, amount]) => [name, quantityValue(amount)])),
  }));
  return { reserved, required };
}

function reservedOf({ systemReserved, kubeReserved }: Config) {
  return addResources(readResources(systemReserved), readResources(kubeReserved));
}

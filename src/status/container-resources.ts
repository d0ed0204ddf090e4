import type { Container, ContainerStatus, ResourceRequirements } from '../kinds/index.ts';
import { compareQuantities, formatQuantity, milliQuantity, type Quantity, quantityOf } from '../lib/index.ts';
import {
  type ObservedContainer,
  quotaUsToMilliCpu,
  type ResourceSide,
  readResources,
  sharesToMilliCpu,
} from '../pods/index.ts';

/**
 * CPU amounts in millicores below which the kernel's values are ambiguous, because it rounds up to
 * a minimum.
 */
const minReported = { requests: 2, limits: 10 } as const;

/** Resources that the runtime reports for the container; unreported values are undefined. */
interface ReportedResources {
  readonly requests: { readonly cpu: Quantity | undefined };
  readonly limits: { readonly cpu: Quantity | undefined; readonly memory: Quantity | undefined };
}

/** Resources of the container from sources other than the runtime. */
export interface KnownResources {
  /** The last published status of the container. */
  readonly old: ContainerStatus | undefined;
  /** The resources last sent to the runtime for the container. */
  readonly actuated: ResourceRequirements | undefined;
}

/**
 * Computes the resources in a container's status: the allocated resources, replaced by those that
 * the runtime reports while the container runs. A value that the runtime does not report is taken
 * from the resources last sent to the runtime, otherwise from the published status of the same
 * instance.
 */
export function actualResources(
  { resources = {} }: Container,
  instance: ObservedContainer,
  { old, actuated }: KnownResources,
): ResourceRequirements {
  if (instance.state !== 'running') return resources;
  const reported = reportedBy(instance);
  const isSame = old?.containerID === `${instance.runtimeName}://${instance.id}`;
  const before = actuated ?? (isSame && old?.state?.running !== undefined ? old.resources : undefined);
  return {
    ...resources,
    ...overridden('requests', resources, reported.requests, before),
    ...overridden('limits', resources, reported.limits, before),
  };
}

function reportedBy({ resources }: ObservedContainer): ReportedResources {
  const { cpuShares = 0, cpuQuota = -1, cpuPeriod = 0, memoryLimitBytes = 0 } = resources ?? {};
  const request = sharesToMilliCpu(cpuShares);
  const limit = cpuPeriod > 0 ? quotaUsToMilliCpu(cpuQuota, cpuPeriod) : 0;
  return {
    requests: { cpu: request > 0 ? milliQuantity(request) : undefined },
    limits: {
      cpu: limit > 0 ? milliQuantity(limit) : undefined,
      memory: memoryLimitBytes > 0 ? quantityOf(memoryLimitBytes, 'BinarySI') : undefined,
    },
  };
}

/**
 * Resources that were never allocated are omitted, because every container has a minimum CPU weight
 * that was not requested.
 */
function overridden(
  side: ResourceSide,
  allotted: ResourceRequirements,
  reported: Readonly<Partial<Record<'cpu' | 'memory', Quantity | undefined>>>,
  before: ResourceRequirements | undefined,
): Pick<ResourceRequirements, ResourceSide> {
  const own = allotted[side];
  if (own === undefined) return {};
  const amounts = (['cpu', 'memory'] as const).flatMap((name) => {
    const text = shown(name, side, own[name], reported[name]) ?? before?.[side]?.[name];
    return text === undefined ? [] : [[name, text] as const];
  });
  return { [side]: { ...own, ...Object.fromEntries(amounts) } };
}

/**
 * Keeps the allocated quantity's text when its value is equal, so that the status does not seem to
 * change.
 */
function shown(
  name: 'cpu' | 'memory',
  side: ResourceSide,
  allotted: string | undefined,
  reported: Quantity | undefined,
): string | undefined {
  if (reported === undefined) return undefined;
  const own = readResources(allotted === undefined ? {} : { [name]: allotted }).get(name);
  const isReported = (amount: Quantity | undefined) =>
    amount !== undefined && compareQuantities(amount, milliQuantity(minReported[side])) > 0;
  if (name === 'cpu' && !isReported(reported) && !isReported(own)) return allotted;
  return own !== undefined && compareQuantities(own, reported) === 0 ? allotted : formatQuantity(reported);
}

import type {
  Container,
  PodSpec,
  PodStatus,
  ResourceRequirements,
  Pod as WrittenPod,
} from '../../kinds/index.ts';
import type { YamlTree } from '../../lib/index.ts';
import { isSidecar } from '../../pods/index.ts';
import { addHeld, entryOf, type HeldQuantity, holdWritten, maxHeld } from './internal-quantity.ts';

type Fields = Readonly<Record<string, unknown>>;
type Kind = 'limits' | 'requests';
type Amounts = ReadonlyMap<string, HeldQuantity>;

/**
 * Converts a defaulted pod to the internal representation of the Go kubelet. Quantities that
 * defaulting derived from other quantities keep the spelling of the manifest.
 */
export function toInternalPod(pod: WrittenPod & { readonly spec: PodSpec }, manifest: YamlTree): Fields {
  const { metadata, spec, status } = pod;
  return {
    metadata: metadata?.annotations ? { ...metadata, annotations: retained(metadata.annotations) } : metadata,
    spec: heldSpec(spec, entryOf(manifest, 'spec')),
    status: status && heldStatus(status),
  };
}

/** Annotations that once contained init containers; the Go kubelet drops them. */
const droppedAnnotations: ReadonlySet<string> = new Set(
  ['pod.beta.kubernetes.io/', 'pod.alpha.kubernetes.io/'].flatMap((prefix) => [
    `${prefix}init-containers`,
    `${prefix}init-container-statuses`,
  ]),
);

function retained(annotations: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const entries = Object.entries(annotations);
  return Object.fromEntries(entries.filter(([key]) => !droppedAnnotations.has(key)));
}

function heldSpec(spec: PodSpec, written: YamlTree | undefined): Fields {
  const { hostNetwork, hostPID, hostIPC, shareProcessNamespace, hostUsers, securityContext } = spec;
  const host = { hostNetwork, hostPID, hostIPC, shareProcessNamespace, hostUsers };
  const grace = spec.terminationGracePeriodSeconds ?? 0;
  return {
    ...spec,
    securityContext: { ...securityContext, ...host },
    terminationGracePeriodSeconds: grace < 0 ? 1 : grace,
    containers: heldContainers(spec.containers, entryOf(written, 'containers')),
    ...(spec.initContainers && {
      initContainers: heldContainers(spec.initContainers, entryOf(written, 'initContainers')),
    }),
    ...(spec.resources && { resources: heldPodResources(spec, spec.resources, written) }),
  };
}

function heldContainers(containers: readonly Container[], written: YamlTree | undefined): readonly unknown[] {
  return containers.map((container, index) => {
    const { resources } = container;
    if (resources?.limits === undefined) return container;
    const requests = heldRequests(resources, resourcesOf(written, index));
    return { ...container, resources: { ...resources, requests: Object.fromEntries(requests) } };
  });
}

/** Requests of a container; a defaulted request has the spelling of the limit. */
function heldRequests({ requests = {} }: ResourceRequirements, written: YamlTree | undefined): Amounts {
  return new Map(
    Object.keys(requests).flatMap((name) => {
      const held = amountOf(written, 'requests', name) ?? amountOf(written, 'limits', name);
      return held === undefined ? [] : [[name, held]];
    }),
  );
}

function heldLimits({ limits = {} }: ResourceRequirements, written: YamlTree | undefined): Amounts {
  return new Map(
    Object.keys(limits).flatMap((name) => {
      const held = amountOf(written, 'limits', name);
      return held === undefined ? [] : [[name, held]];
    }),
  );
}

function resourcesOf(containers: YamlTree | undefined, index: number): YamlTree | undefined {
  return containers?.kind === 'list' ? entryOf(containers.items[index], 'resources') : undefined;
}

function amountOf(resources: YamlTree | undefined, kind: Kind, name: string): HeldQuantity | undefined {
  const written = entryOf(entryOf(resources, kind), name);
  return written === undefined ? undefined : holdWritten(written);
}

/**
 * Pod-level limits and requests: as in the manifest, otherwise the sum over the containers,
 * otherwise the pod's limit.
 */
function heldPodResources(
  spec: PodSpec,
  { limits, requests, ...others }: ResourceRequirements,
  written: YamlTree | undefined,
): Fields {
  const own = entryOf(written, 'resources');
  const ofContainers = {
    limits: heldSum(spec, written, 'limits'),
    requests: heldSum(spec, written, 'requests'),
  };
  const limit = (name: string) => amountOf(own, 'limits', name) ?? ofContainers.limits.get(name);
  const summed = (name: string) =>
    name.startsWith('hugepages-') ? undefined : ofContainers.requests.get(name);
  const request = (name: string) => amountOf(own, 'requests', name) ?? summed(name) ?? limit(name);
  return {
    ...others,
    ...(limits && { limits: mapped(limits, limit) }),
    ...(requests && { requests: mapped(requests, request) }),
  };
}

function mapped(
  list: Readonly<Record<string, string>>,
  held: (name: string) => HeldQuantity | undefined,
): Fields {
  return Object.fromEntries(Object.keys(list).map((name) => [name, held(name)]));
}

/**
 * The maximum of these sums: all regular containers with all sidecars, and each init container with
 * the sidecars before it.
 */
function heldSum(spec: PodSpec, written: YamlTree | undefined, kind: Kind): Amounts {
  const amounts = (list: 'containers' | 'initContainers', index: number, { resources = {} }: Container) => {
    const own = resourcesOf(entryOf(written, list), index);
    return kind === 'limits' ? heldLimits(resources, own) : heldRequests(resources, own);
  };
  let total: Amounts = new Map();
  let sidecars: Amounts = new Map();
  let highest: Amounts = new Map();
  for (const [index, container] of spec.containers.entries())
    total = merged(total, amounts('containers', index, container), addHeld);
  for (const [index, container] of (spec.initContainers ?? []).entries()) {
    const own = amounts('initContainers', index, container);
    if (isSidecar(container)) {
      total = merged(total, own, addHeld);
      sidecars = merged(sidecars, own, addHeld);
    }
    const during = isSidecar(container) ? sidecars : merged(own, sidecars, addHeld);
    highest = merged(highest, during, maxHeld);
  }
  return merged(total, highest, maxHeld);
}

function merged(
  to: Amounts,
  from: Amounts,
  both: (a: HeldQuantity, b: HeldQuantity) => HeldQuantity,
): Amounts {
  const all = new Map(to);
  for (const [name, amount] of from) {
    const before = all.get(name);
    all.set(name, before === undefined ? amount : both(before, amount));
  }
  return all;
}

/**
 * Converts the status: the internal type has only the list of addresses, whose first entry is also
 * `podIP` in the API.
 */
function heldStatus(status: PodStatus): Fields {
  const { podIP, podIPs = [] } = status;
  if (!podIP || podIPs[0]?.ip === podIP) return { ...status };
  return { ...status, podIPs: [{ ip: podIP }] };
}

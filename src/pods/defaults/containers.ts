import type {
  Container,
  ContainerPort,
  EnvVar,
  HTTPGetAction,
  Lifecycle,
  LifecycleHandler,
  ObjectFieldSelector,
  PodSpec,
  Probe,
  ResourceRequirements,
} from '../../kinds/index.ts';
import {
  addQuantities,
  compareQuantities,
  formatQuantity,
  parseQuantity,
  type Quantity,
} from '../../lib/index.ts';
import { pullPolicyOf } from '../image-name.ts';
import { isSidecar } from '../pod.ts';

/** Sets the defaults of all three kinds of containers. */
export function withContainerDefaults<T extends Container>(container: T): T {
  return {
    ...container,
    imagePullPolicy: container.imagePullPolicy || pullPolicyOf(undefined, container.image ?? ''),
    terminationMessagePath: container.terminationMessagePath || '/dev/termination-log',
    terminationMessagePolicy: container.terminationMessagePolicy || 'File',
    ...(container.ports && { ports: container.ports.map(withPortDefaults) }),
    ...(container.env && { env: container.env.map(withEnvDefaults) }),
    ...(container.resources && { resources: withRoundedAmounts(container.resources) }),
    ...(container.livenessProbe && { livenessProbe: withProbeDefaults(container.livenessProbe) }),
    ...(container.readinessProbe && { readinessProbe: withProbeDefaults(container.readinessProbe) }),
    ...(container.startupProbe && { startupProbe: withProbeDefaults(container.startupProbe) }),
    ...(container.lifecycle && { lifecycle: withLifecycleDefaults(container.lifecycle) }),
  };
}

/**
 * Sets missing requests of regular and init containers; ephemeral containers must not have
 * resources.
 */
export function withRequests(container: Container): Container {
  const resources = requestsFromLimits(container.resources);
  return resources === undefined ? container : { ...container, resources };
}

/** On the host network the host port of a container port is the same port. */
export function withHostPorts(container: Container): Container {
  if (container.ports === undefined) return container;
  const ports = container.ports.map((port) => ({ ...port, hostPort: port.hostPort || port.containerPort }));
  return { ...container, ports };
}

export function withRoundedAmounts(resources: ResourceRequirements): ResourceRequirements {
  const limits = roundedToMilli(resources.limits);
  const requests = roundedToMilli(resources.requests);
  return { ...resources, ...(limits && { limits }), ...(requests && { requests }) };
}

export function withFieldDefaults(selector: ObjectFieldSelector): ObjectFieldSelector {
  return { ...selector, apiVersion: selector.apiVersion || 'v1' };
}

function withPortDefaults(port: ContainerPort): ContainerPort {
  return { ...port, protocol: port.protocol || 'TCP' };
}

function withEnvDefaults(variable: EnvVar): EnvVar {
  const { valueFrom } = variable;
  if (valueFrom === undefined) return variable;
  const { fieldRef, fileKeyRef } = valueFrom;
  return {
    ...variable,
    valueFrom: {
      ...valueFrom,
      ...(fieldRef && { fieldRef: withFieldDefaults(fieldRef) }),
      ...(fileKeyRef && { fileKeyRef: { ...fileKeyRef, optional: fileKeyRef.optional ?? false } }),
    },
  };
}

function withProbeDefaults(probe: Probe): Probe {
  return {
    ...probe,
    timeoutSeconds: probe.timeoutSeconds || 1,
    periodSeconds: probe.periodSeconds || 10,
    successThreshold: probe.successThreshold || 1,
    failureThreshold: probe.failureThreshold || 3,
    ...(probe.httpGet && { httpGet: withHttpDefaults(probe.httpGet) }),
  };
}

function withLifecycleDefaults(lifecycle: Lifecycle): Lifecycle {
  return {
    ...lifecycle,
    ...(lifecycle.postStart && { postStart: withHandlerDefaults(lifecycle.postStart) }),
    ...(lifecycle.preStop && { preStop: withHandlerDefaults(lifecycle.preStop) }),
  };
}

function withHandlerDefaults(handler: LifecycleHandler): LifecycleHandler {
  return handler.httpGet === undefined ? handler : { ...handler, httpGet: withHttpDefaults(handler.httpGet) };
}

function withHttpDefaults(action: HTTPGetAction): HTTPGetAction {
  return { ...action, path: action.path || '/', scheme: action.scheme || 'HTTP' };
}

/** The amounts by resource name, in canonical spelling. */
export type ResourceList = Readonly<Record<string, string>>;

type Amounts = Map<string, Quantity>;

const milli = 1_000_000n;

/** Rounds amounts up to thousandths. */
export function roundedToMilli(list: ResourceList | undefined): ResourceList | undefined {
  if (list === undefined) return undefined;
  return Object.fromEntries(Object.entries(list).map(([name, amount]) => [name, roundUp(amount)]));
}

function roundUp(amount: string): string {
  const quantity = parseQuantity(amount);
  const over = quantity.nanos % milli;
  if (over === 0n) return amount;
  return formatQuantity({ ...quantity, nanos: quantity.nanos - over + (over > 0n ? milli : -milli) });
}

/** Sets a missing request to the limit of the same resource. */
function requestsFromLimits(resources: ResourceRequirements | undefined): ResourceRequirements | undefined {
  if (resources?.limits === undefined) return resources;
  return { ...resources, requests: { ...resources.limits, ...resources.requests } };
}

/**
 * The resources of all containers together: the sum of regular containers and sidecars, or an init
 * container plus the sidecars started before it, whichever is more.
 */
export function aggregateContainers(
  spec: PodSpec,
  which: 'requests' | 'limits',
): ReadonlyMap<string, Quantity> {
  const total: Amounts = new Map();
  const sidecars: Amounts = new Map();
  const highest: Amounts = new Map();
  for (const container of spec.containers) add(total, container.resources?.[which]);
  for (const container of spec.initContainers ?? []) {
    const own = container.resources?.[which];
    const during: Amounts = new Map(sidecars);
    add(during, own);
    if (isSidecar(container)) {
      add(total, own);
      add(sidecars, own);
    }
    raise(highest, during);
  }
  raise(total, highest);
  return total;
}

function add(to: Amounts, list: ResourceList | undefined): void {
  for (const [name, amount] of Object.entries(list ?? {})) {
    const quantity = parseQuantity(amount);
    const before = to.get(name);
    to.set(name, before === undefined ? quantity : addQuantities(before, quantity));
  }
}

function raise(to: Amounts, least: Amounts): void {
  for (const [name, quantity] of least) {
    const before = to.get(name);
    if (before === undefined || compareQuantities(quantity, before) > 0) to.set(name, quantity);
  }
}

export function isHugePages(name: string): boolean {
  return name.startsWith('hugepages-');
}

/** Resources that may be set at pod level. */
export function isPodLevelResource(name: string): boolean {
  return name === 'cpu' || name === 'memory' || isHugePages(name);
}

/**
 * Sets missing pod-level requests to those of the containers, for a pod with pod-level resources.
 */
export function podLevelDefaults(spec: PodSpec): ResourceRequirements | undefined {
  const { resources } = spec;
  if (resources === undefined) return undefined;
  const limits = podLimits(spec, resources);
  const requests = isEmpty(limits) ? resources.requests : podRequests(spec, resources, limits ?? {});
  return { ...resources, ...(limits && { limits }), ...(requests && { requests }) };
}

function podLimits(spec: PodSpec, { limits, requests }: ResourceRequirements): ResourceList | undefined {
  if (isEmpty(limits) && isEmpty(requests)) return limits;
  const missing = [...aggregateContainers(spec, 'limits')]
    .filter(([name]) => isHugePages(name) && requests?.[name] === undefined && limits?.[name] === undefined)
    .map(([name, quantity]) => [name, formatQuantity(quantity)] as const);
  return missing.length === 0 ? limits : { ...limits, ...Object.fromEntries(missing) };
}

function podRequests(
  spec: PodSpec,
  { requests }: ResourceRequirements,
  limits: ResourceList,
): ResourceList | undefined {
  const ofContainers = [...aggregateContainers(spec, 'requests')]
    .filter(([name]) => isPodLevelResource(name) && !isHugePages(name))
    .map(([name, quantity]) => [name, formatQuantity(quantity)] as const);
  const ofLimits = Object.entries(limits).filter(([name]) => isPodLevelResource(name));
  const filled = { ...Object.fromEntries(ofLimits), ...Object.fromEntries(ofContainers), ...requests };
  return isEmpty(filled) ? requests : filled;
}

function isEmpty(list: ResourceList | undefined): boolean {
  return list === undefined || Object.keys(list).length === 0;
}

import type {
  Container,
  ContainerPort,
  EnvVar,
  HTTPGetAction,
  Lifecycle,
  LifecycleHandler,
  ObjectFieldSelector,
  Probe,
  ResourceRequirements,
} from '../../kinds/index.ts';
import { pullPolicyOf } from '../image-name.ts';
import { requestsFromLimits, roundedToMilli } from './resources.ts';

/** What all three sorts of containers have in common. */
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

/** Not for ephemeral containers, which may have no resources of their own. */
export function withRequests(container: Container): Container {
  const resources = requestsFromLimits(container.resources);
  return resources === undefined ? container : { ...container, resources };
}

/** On the network of the node a port of the container is that port of the node. */
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

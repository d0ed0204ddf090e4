import type {
  Container,
  ContainerPort,
  ContainerResizePolicy,
  ContainerRestartRule,
  EphemeralContainer,
  FieldPath,
  PodSpec,
} from '../../kinds/index.ts';
import { isSidecar } from '../pod.ts';
import type { FeatureGate } from '../rules.ts';
import { checkEnv, checkEnvFrom } from './env.ts';
import { checkLifecycle, checkProbe, type HandlerContext, probeKinds } from './handlers.ts';
import { checkDevices, checkMounts, type KnownVolumes } from './mounts.ts';
import { dnsLabel, portName, portRange } from './names.ts';
import {
  checkChoice,
  checkName,
  checkPresent,
  checkRange,
  checkText,
  missing,
  named,
  notThere,
  type Report,
  refuse,
  repeated,
  tooMany,
  wrong,
} from './report.ts';
import { checkResources } from './resources.ts';
import { checkSecurityContext } from './security.ts';

/** Facts about the pod that the validation of its containers needs. */
export interface ContainerContext extends HandlerContext {
  readonly spec: PodSpec;
  readonly volumes: KnownVolumes;
  readonly enabled: FeatureGate;
}

export function checkContainers(report: Report, path: FieldPath, context: ContainerContext): void {
  const { containers } = context.spec;
  if (containers.length === 0) missing(report, path.child('containers'));
  const names = new Set<string>();
  containers.forEach((container, index) => {
    const at = path.child('containers').index(index);
    checkCommon(report, at, container, context);
    checkNewName(report, at, container, names);
    checkRunning(report, at, container, context);
    if (context.enabled('ContainerRestartRules')) checkRestartRules(report, at, container, context.enabled);
    else if (container.restartPolicy !== undefined)
      refuse(report, at.child('restartPolicy'), 'may not be set for non-init containers');
  });
  checkHostPorts(report, path.child('containers'), containers);
}

export function checkInitContainers(report: Report, path: FieldPath, context: ContainerContext): void {
  const { spec } = context;
  const names = new Set(spec.containers.map(({ name }) => name));
  spec.initContainers?.forEach((container, index) => {
    const at = path.child('initContainers').index(index);
    checkCommon(report, at, container, context);
    if (container.name) checkNewName(report, at, container, names);
    checkInitRestart(report, at, container, context.enabled);
    // Init containers run sequentially, so only ports of the same init container can conflict.
    checkHostPorts(report, path.child('initContainers'), [container], index);
    if (isSidecar(container)) checkRunning(report, at, container, context);
    else checkRunsOnce(report, at, container);
  });
}

/**
 * Ephemeral containers are added later through the API, so few of their fields are validated here.
 */
export function checkEphemeralContainers(report: Report, path: FieldPath, context: ContainerContext): void {
  const { spec } = context;
  const others = new Set([...spec.containers, ...(spec.initContainers ?? [])].map(({ name }) => name));
  const names = new Set(others);
  spec.ephemeralContainers?.forEach((container, index) => {
    const at = path.child('ephemeralContainers').index(index);
    checkCommon(report, at, container, context);
    checkNewName(report, at, container, names);
    if (container.targetContainerName && !others.has(container.targetContainerName))
      notThere(report, at.child('targetContainerName'), container.targetContainerName);
    checkEphemeralFields(report, at, container);
  });
}

const notForEphemeral = 'cannot be set for an Ephemeral Container';

const notEphemeral = [
  'ports',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'lifecycle',
  'resources',
  'resizePolicy',
  'restartPolicy',
  'restartPolicyRules',
] as const;

function checkEphemeralFields(report: Report, path: FieldPath, container: EphemeralContainer): void {
  for (const field of notEphemeral)
    if (isGiven(container[field])) refuse(report, path.child(field), notForEphemeral);
  container.volumeMounts?.forEach((mount, index) => {
    for (const field of ['subPath', 'subPathExpr'] as const)
      if (mount[field]) refuse(report, path.child('volumeMounts').index(index).child(field), notForEphemeral);
  });
}

/** Empty resources and ports of an ephemeral container count as missing. */
function isGiven(value: unknown): boolean {
  const isEmpty = typeof value === 'object' && value !== null && Object.keys(value).length === 0;
  return value !== undefined && !isEmpty;
}

function checkNewName(report: Report, path: FieldPath, { name }: Container, names: Set<string>): void {
  if (names.has(name)) repeated(report, path.child('name'), name);
  else names.add(name);
}

function checkCommon(report: Report, path: FieldPath, container: Container, context: ContainerContext): void {
  const { spec, volumes } = context;
  checkName(report, path.child('name'), container.name, dnsLabel);
  checkPresent(report, path.child('image'), container.image);
  const policies = ['File', 'FallbackToLogsOnError'];
  const policy = container.terminationMessagePolicy;
  checkChoice(report, path.child('terminationMessagePolicy'), policy, { of: policies, absent: 'refused' });
  checkPorts(report, path.child('ports'), container.ports);
  checkEnv(report, path.child('env'), container.env);
  checkEnvFrom(report, path.child('envFrom'), container.envFrom);
  checkMounts(report, path.child('volumeMounts'), container, volumes);
  checkDevices(report, path.child('volumeDevices'), container, volumes);
  checkPullPolicy(report, path.child('imagePullPolicy'), container.imagePullPolicy);
  const claims = new Set(spec.resourceClaims?.map(({ name }) => name));
  checkResources(report, path.child('resources'), container.resources, { level: 'container', claims });
  checkResizePolicy(report, path.child('resizePolicy'), container.resizePolicy, spec.restartPolicy);
  const users = spec.hostUsers === false ? 'own' : 'host';
  checkSecurityContext(report, path.child('securityContext'), container.securityContext, users);
}

/**
 * Rejects leading and trailing spaces in image names; called last, so that these errors follow all
 * others of the spec.
 */
export function checkImageSpaces(
  report: Report,
  path: FieldPath,
  containers: readonly Container[] = [],
): void {
  containers.forEach(({ image = '' }, index) => {
    if (image.trim() !== image)
      wrong(report, path.index(index).child('image'), image, 'must not have leading or trailing whitespace');
  });
}

export function checkPullPolicy(report: Report, path: FieldPath, policy: string | undefined): void {
  checkChoice(report, path, policy, { of: ['Always', 'IfNotPresent', 'Never'], absent: 'refused' });
}

function checkPorts(report: Report, path: FieldPath, ports: readonly ContainerPort[] = []): void {
  const names = new Set<string>();
  ports.forEach((port, index) => {
    const at = path.index(index);
    checkText(report, at.child('name'), port.name, portName);
    if (port.name && portName(port.name).length === 0) {
      if (names.has(port.name)) repeated(report, at.child('name'), port.name);
      names.add(port.name);
    }
    if (port.containerPort === 0) missing(report, at.child('containerPort'));
    else checkRange(report, at.child('containerPort'), port.containerPort, portRange);
    if (port.hostPort) checkRange(report, at.child('hostPort'), port.hostPort, portRange);
    checkChoice(report, at.child('protocol'), port.protocol, {
      of: ['SCTP', 'TCP', 'UDP'],
      absent: 'refused',
    });
  });
}

function checkHostPorts(report: Report, path: FieldPath, containers: readonly Container[], first = 0): void {
  const taken = new Set<string>();
  containers.forEach((container, index) => {
    container.ports?.forEach((port, position) => {
      if (!port.hostPort) return;
      const key = `${port.protocol}/${port.hostIP ?? ''}/${port.hostPort}`;
      const at = path
        .index(first + index)
        .child('ports')
        .index(position)
        .child('hostPort');
      if (taken.has(key)) repeated(report, at, key);
      taken.add(key);
    });
  });
}

export function checkPortsOfNode(report: Report, path: FieldPath, containers: readonly Container[]): void {
  containers.forEach((container, index) => {
    container.ports?.forEach((port, position) => {
      const at = path.index(index).child('ports').index(position).child('hostPort');
      if ((port.hostPort ?? 0) !== port.containerPort)
        wrong(report, at, port.hostPort ?? 0, 'must match `containerPort` when `hostNetwork` is true');
    });
  });
}

function checkResizePolicy(
  report: Report,
  path: FieldPath,
  policies: readonly ContainerResizePolicy[] = [],
  podPolicy: string | undefined,
): void {
  const names = new Set<string>();
  policies.forEach((policy, index) => {
    const at = path.index(index);
    const tell = named(report, path);
    const { resourceName, restartPolicy } = policy;
    if (names.has(resourceName)) repeated(report, at, resourceName);
    names.add(resourceName);
    checkChoice(tell, at.child('resourceName'), resourceName, { of: ['cpu', 'memory'], absent: 'refused' });
    const of = ['NotRequired', 'RestartContainer'];
    checkChoice(tell, at.child('restartPolicy'), restartPolicy, { of, absent: 'refused' });
    if (podPolicy === 'Never' && restartPolicy === 'RestartContainer')
      wrong(
        tell,
        at.child('restartPolicy'),
        restartPolicy,
        "must be 'NotRequired' when pod `restartPolicy` is 'Never'",
      );
  });
}

/** Validates the hooks and probes of regular containers and sidecars. */
function checkRunning(
  report: Report,
  path: FieldPath,
  container: Container,
  context: ContainerContext,
): void {
  checkLifecycle(report, path.child('lifecycle'), container.lifecycle, context);
  for (const kind of probeKinds) checkProbe(report, path.child(kind), kind, container[kind]);
}

function checkRunsOnce(report: Report, path: FieldPath, container: Container): void {
  const why = 'may not be set for init containers without restartPolicy=Always';
  for (const field of ['lifecycle', ...probeKinds] as const)
    if (container[field] !== undefined) refuse(report, path.child(field), why);
  container.resizePolicy?.forEach((policy, index) => {
    if (policy.restartPolicy === 'RestartContainer')
      wrong(
        report,
        path.child('resizePolicy').index(index).child('restartPolicy'),
        policy.restartPolicy,
        "must not be set to 'RestartContainer' for non-sidecar initContainers",
      );
  });
}

function checkInitRestart(report: Report, path: FieldPath, container: Container, enabled: FeatureGate): void {
  const { restartPolicy: policy, restartPolicyRules: rules = [] } = container;
  if (!enabled('ContainerRestartRules')) {
    checkChoice(report, path.child('restartPolicy'), policy, { of: ['Always'], absent: 'allowed' });
    return;
  }
  if (policy === 'Always' && rules.length > 0 && !enabled('RestartAllContainersOnContainerExits'))
    refuse(
      report,
      path.child('restartPolicyRules'),
      'restartPolicyRules are not allowed for init containers with restart policy Always',
    );
  else checkRestartRules(report, path, container, enabled);
}

const mostRules = 20;
const mostExitCodes = 255;

function checkRestartRules(
  report: Report,
  path: FieldPath,
  container: Container,
  enabled: FeatureGate,
): void {
  const { restartPolicy: policy, restartPolicyRules: rules = [] } = container;
  const of = ['Always', 'Never', 'OnFailure'];
  if (policy === undefined && rules.length > 0)
    missing(report, path.child('restartPolicy'), 'must specify restartPolicy when restart rules are used');
  checkChoice(report, path.child('restartPolicy'), policy, { of, absent: 'allowed' });
  const at = path.child('restartPolicyRules');
  if (rules.length > mostRules) tooMany(report, at, rules.length, mostRules);
  const all = enabled('RestartAllContainersOnContainerExits') ? ['RestartAllContainers'] : [];
  rules.forEach((rule, index) => {
    checkRestartRule(report, at.index(index), rule, ['Restart', ...all]);
  });
}

function checkRestartRule(
  report: Report,
  path: FieldPath,
  { action, exitCodes }: ContainerRestartRule,
  actions: readonly string[],
): void {
  checkChoice(report, path.child('action'), action, { of: actions, absent: 'unsupported' });
  const at = path.child('exitCodes');
  if (exitCodes === undefined) {
    missing(report, at, 'must be specified');
    return;
  }
  const of = ['In', 'NotIn'];
  checkChoice(report, at.child('operator'), exitCodes.operator, { of, absent: 'unsupported' });
  const count = exitCodes.values?.length ?? 0;
  if (count > mostExitCodes) tooMany(report, at.child('values'), count, mostExitCodes);
}

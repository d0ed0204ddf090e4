import type {
  FieldPath,
  HTTPGetAction,
  Lifecycle,
  LifecycleHandler,
  Probe,
  ProbeHandler,
} from '../../kinds/index.ts';
import { httpHeaderName, portName, portRange } from './names.ts';
import {
  checkChoice,
  checkForm,
  checkNotNegative,
  checkPresent,
  checkRange,
  missing,
  named,
  type Report,
  refuse,
  wrong,
} from './report.ts';

/** Facts about the pod that the validation of hooks and probes needs. */
export interface HandlerContext {
  readonly graceSeconds: number | undefined;
  /** The operating system of the pod; empty when not set. */
  readonly os: string;
}

export type ProbeKind = 'livenessProbe' | 'readinessProbe' | 'startupProbe';
export const probeKinds: readonly ProbeKind[] = ['livenessProbe', 'readinessProbe', 'startupProbe'];

const numbers = [
  'initialDelaySeconds',
  'timeoutSeconds',
  'periodSeconds',
  'successThreshold',
  'failureThreshold',
] as const;

export function checkProbe(report: Report, path: FieldPath, kind: ProbeKind, probe: Probe | undefined): void {
  if (probe === undefined) return;
  checkHandler(report, path, probe, undefined);
  for (const field of numbers) checkNotNegative(report, path.child(field), probe[field]);
  const { successThreshold, terminationGracePeriodSeconds: seconds } = probe;
  const grace = path.child('terminationGracePeriodSeconds');
  if (seconds !== undefined && seconds <= 0) wrong(report, grace, seconds, 'must be greater than 0');
  if (kind === 'readinessProbe') {
    if (seconds !== undefined) wrong(report, grace, seconds, 'must not be set for readinessProbes');
  } else if (successThreshold !== 1)
    wrong(report, path.child('successThreshold'), successThreshold, 'must be 1');
}

export function checkLifecycle(
  report: Report,
  path: FieldPath,
  lifecycle: Lifecycle | undefined,
  context: HandlerContext,
): void {
  if (lifecycle === undefined) return;
  const { postStart, preStop, stopSignal } = lifecycle;
  if (postStart) checkHandler(report, path.child('postStart'), postStart, context.graceSeconds);
  if (preStop) checkHandler(report, path.child('preStop'), preStop, context.graceSeconds);
  if (stopSignal !== undefined) checkStopSignal(report, path.child('stopSignal'), stopSignal, context.os);
}

/** Requires that exactly one action of a hook or probe is set. */
function checkHandler(
  report: Report,
  path: FieldPath,
  handler: ProbeHandler & LifecycleHandler,
  graceSeconds: number | undefined,
): void {
  const { exec, httpGet, tcpSocket, grpc, sleep } = handler;
  const given = Object.entries({ exec, httpGet, tcpSocket, grpc, sleep }).filter(([, action]) => action);
  if (given.length === 0) missing(report, path, 'must specify a handler type');
  for (const [name] of given.slice(1))
    refuse(report, path.child(name), 'may not specify more than 1 handler type');
  if (exec && (exec.command ?? []).length === 0) missing(report, path.child('exec', 'command'));
  if (httpGet) checkHttpGet(report, path.child('httpGet'), httpGet);
  if (tcpSocket) checkPort(report, path.child('tcpSocket', 'port'), tcpSocket.port);
  if (grpc) checkPort(report, path.child('grpc', 'port'), grpc.port);
  if (sleep && graceSeconds !== undefined && (sleep.seconds < 0 || sleep.seconds > graceSeconds))
    wrong(
      named(report, path.child('sleep')),
      path.child('sleep', 'seconds'),
      sleep.seconds,
      `must be non-negative and less than terminationGracePeriodSeconds (${graceSeconds})`,
    );
}

function checkHttpGet(report: Report, path: FieldPath, action: HTTPGetAction): void {
  checkPresent(report, path.child('path'), action.path);
  checkPort(report, path.child('port'), action.port);
  checkChoice(report, path.child('scheme'), action.scheme, { of: ['HTTP', 'HTTPS'], absent: 'unsupported' });
  const headers = path.child('httpHeaders');
  action.httpHeaders?.forEach((header, index) => {
    checkForm(named(report, headers), headers.index(index).child('name'), header.name, httpHeaderName);
  });
}

function checkPort(report: Report, path: FieldPath, port: number | string): void {
  if (typeof port === 'number') checkRange(report, path, port, portRange);
  else checkForm(report, path, port, portName);
}

function checkStopSignal(report: Report, path: FieldPath, signal: string, os: string): void {
  if (os === '') refuse(report, path, 'may not be set for containers with empty `spec.os.name`');
  else
    checkChoice(report, path, signal, {
      of: os === 'windows' ? ['SIGKILL', 'SIGTERM'] : linuxSignals().toSorted(),
      absent: 'unsupported',
    });
}

function linuxSignals(): readonly string[] {
  const plain =
    'ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP SYS TERM TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ RTMIN RTMAX';
  const above = Array.from({ length: 15 }, (_, step) => `RTMIN+${step + 1}`);
  const below = Array.from({ length: 14 }, (_, step) => `RTMAX-${step + 1}`);
  return [...plain.split(' '), ...above, ...below].map((name) => `SIG${name}`);
}

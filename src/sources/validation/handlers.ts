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
  checkName,
  checkPresent,
  checkRange,
  missing,
  type Report,
  refuse,
  wrong,
} from './report.ts';

/** What of the pod matters to hooks and probes. */
export interface HandlerContext {
  readonly graceSeconds: number | undefined;
  /** The system the pod says it is for; empty when it says none. */
  readonly os: string;
}

export type ProbeKind = 'livenessProbe' | 'readinessProbe' | 'startupProbe';
export const probeKinds: readonly ProbeKind[] = ['livenessProbe', 'readinessProbe', 'startupProbe'];

const unbounded = Number.POSITIVE_INFINITY;

export function checkProbe(report: Report, path: FieldPath, kind: ProbeKind, probe: Probe | undefined): void {
  if (probe === undefined) return;
  checkHandler(report, path, probe, undefined);
  checkRange(report, path.child('initialDelaySeconds'), probe.initialDelaySeconds, [0, unbounded]);
  checkRange(report, path.child('timeoutSeconds'), probe.timeoutSeconds, [0, unbounded]);
  checkRange(report, path.child('periodSeconds'), probe.periodSeconds, [0, unbounded]);
  checkRange(report, path.child('failureThreshold'), probe.failureThreshold, [0, unbounded]);
  const grace = path.child('terminationGracePeriodSeconds');
  checkRange(report, grace, probe.terminationGracePeriodSeconds, [1, unbounded]);
  const threshold = path.child('successThreshold');
  if (kind === 'readinessProbe') {
    checkRange(report, threshold, probe.successThreshold, [0, unbounded]);
    if (probe.terminationGracePeriodSeconds !== undefined) refuse(report, grace, 'on a readiness probe');
  } else if (probe.successThreshold !== 1) wrong(report, threshold, probe.successThreshold, 'be 1');
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

/** Exactly one way to act. */
function checkHandler(
  report: Report,
  path: FieldPath,
  handler: ProbeHandler & LifecycleHandler,
  graceSeconds: number | undefined,
): void {
  const { exec, httpGet, tcpSocket, grpc, sleep } = handler;
  const given = Object.entries({ exec, httpGet, tcpSocket, grpc, sleep }).filter(([, action]) => action);
  if (given.length === 0) missing(report, path, 'to a way to act, such as exec or httpGet');
  for (const [name] of given.slice(1)) refuse(report, path.child(name), `beside ${given[0]?.[0]}`);
  if (exec && (exec.command ?? []).length === 0) missing(report, path.child('exec', 'command'));
  if (httpGet) checkHttpGet(report, path.child('httpGet'), httpGet);
  if (tcpSocket) checkPort(report, path.child('tcpSocket', 'port'), tcpSocket.port);
  if (grpc) checkPort(report, path.child('grpc', 'port'), grpc.port);
  if (sleep && graceSeconds !== undefined)
    checkRange(report, path.child('sleep', 'seconds'), sleep.seconds, [0, graceSeconds]);
}

function checkHttpGet(report: Report, path: FieldPath, action: HTTPGetAction): void {
  checkPresent(report, path.child('path'), action.path);
  checkPort(report, path.child('port'), action.port);
  checkChoice(report, path.child('scheme'), action.scheme, { of: ['HTTP', 'HTTPS'], absent: 'refused' });
  action.httpHeaders?.forEach((header, index) => {
    checkName(report, path.child('httpHeaders').index(index).child('name'), header.name, httpHeaderName);
  });
}

function checkPort(report: Report, path: FieldPath, port: number | string): void {
  if (typeof port === 'number') checkRange(report, path, port, portRange);
  else checkName(report, path, port, portName);
}

function checkStopSignal(report: Report, path: FieldPath, signal: string, os: string): void {
  if (os === '') refuse(report, path, 'unless spec.os.name is set');
  else
    checkChoice(report, path, signal, {
      of: os === 'windows' ? ['SIGKILL', 'SIGTERM'] : linuxSignals(),
      absent: 'refused',
    });
}

function linuxSignals(): readonly string[] {
  const plain =
    'ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP SYS TERM TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ RTMIN RTMAX';
  const above = Array.from({ length: 15 }, (_, step) => `RTMIN+${step + 1}`);
  const below = Array.from({ length: 14 }, (_, step) => `RTMAX-${step + 1}`);
  return [...plain.split(' '), ...above, ...below].map((name) => `SIG${name}`);
}

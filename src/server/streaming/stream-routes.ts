import { KubelingError } from '../../lib/index.ts';
import type { Pod, PodUid } from '../../pods/index.ts';
import { isWebSocket, offeredProtocols } from '../../protocols/websocket/index.ts';
import {
  type Request,
  type Response,
  type Route,
  text,
  type UpgradeCall,
  type UpgradeRoute,
} from '../router.ts';
import { type ReadQuery, type RequestedStreams, readPorts, readRequestedStreams } from './remote-command.ts';
import { type AfterInput, closingProtocol, onlyStderr, translateCommand } from './translate-command.ts';
import { type TunnelDeps, tunnel, tunnelPortForward, tunnelProtocol } from './tunnel.ts';

/** Finds pods and requests streaming URLs from the runtime. */
export interface StreamingHost {
  getPodByName(namespace: string, name: string): Pod | undefined;
  /** Maps the UID of a mirror pod to that of its static pod. */
  translatePodUid(uid: PodUid): PodUid;
  /**
   * Requests the runtime's streaming URL, which can be used once and expires after a short time.
   */
  exec(
    pod: Pod,
    container: string,
    command: readonly string[],
    streams: RequestedStreams,
    signal: AbortSignal,
  ): Promise<string>;
  attach(pod: Pod, container: string, streams: RequestedStreams, signal: AbortSignal): Promise<string>;
  portForward(pod: Pod, ports: readonly number[], signal: AbortSignal): Promise<string>;
  /** Runs the command until it exits and returns its output; rejects when it fails. */
  run(pod: Pod, container: string, command: readonly string[], signal: AbortSignal): Promise<Uint8Array>;
}

export interface StreamRoutes {
  readonly routes: readonly Route[];
  readonly upgrades: readonly UpgradeRoute[];
}

type Verb = 'exec' | 'attach' | 'portForward';

/** The runtime's URL of the stream, or the error response. */
type Plan =
  | {
      readonly kind: 'ready';
      readonly url: URL;
      readonly stderrUrl: URL | undefined;
      readonly command: StreamRequest;
    }
  | { readonly kind: 'refused'; readonly response: Response };

const methods = ['GET', 'POST'];

export function streamRoutes(host: StreamingHost, deps: TunnelDeps): StreamRoutes {
  const places = [
    ...containerPaths('exec').map((path) => ({ path, verb: 'exec' as const })),
    ...containerPaths('attach').map((path) => ({ path, verb: 'attach' as const })),
    { path: '/portForward/{namespace}/{pod}', verb: 'portForward' as const },
    { path: '/portForward/{namespace}/{pod}/{uid}', verb: 'portForward' as const },
  ];
  return {
    upgrades: places.map(({ path, verb }) => ({
      path,
      methods,
      upgrade: async (call, signal) => await upgradeStream(host, verb, call, deps, signal),
    })),
    routes: [
      ...places.map(({ path, verb }) => ({
        path,
        methods,
        answer: async (request: Request, signal: AbortSignal) =>
          await answerWithoutUpgrade(host, verb, request, signal),
      })),
      ...containerPaths('run').map((path) => ({
        path,
        methods: ['POST'],
        answer: async (request: Request, signal: AbortSignal) => await run(host, request, signal),
      })),
    ],
  };
}

function containerPaths(verb: string): readonly string[] {
  return [`/${verb}/{namespace}/{pod}/{container}`, `/${verb}/{namespace}/{pod}/{uid}/{container}`];
}

async function upgradeStream(
  host: StreamingHost,
  verb: Verb,
  call: UpgradeCall,
  deps: TunnelDeps,
  signal: AbortSignal,
): Promise<Response | undefined> {
  const { headers } = call.request;
  if (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0) {
    return text(400, 'a request to upgrade must have no body');
  }
  const offered = isWebSocket(headers) ? offeredProtocols(headers) : [];
  const canSplit = offered.includes(closingProtocol);
  const plan = await planStream(host, verb, call.request, canSplit, signal);
  if (plan.kind === 'refused') return plan.response;
  const { url, stderrUrl, command } = plan;
  if (command.kind !== 'port-forward' && canSplit) {
    const process = command.kind === 'attach' ? 'attached' : 'new';
    const { streams, afterInput } = command;
    return await translateCommand(call, { url, stderrUrl, streams, process, afterInput }, deps, signal);
  }
  if (verb === 'portForward' && offered.includes(tunnelProtocol)) {
    return await tunnelPortForward(call, url, deps, signal);
  }
  return await tunnel(call, url, deps, signal);
}

/**
 * Responds to a stream request without an upgrade; other errors of the request are reported first.
 */
async function answerWithoutUpgrade(
  host: StreamingHost,
  verb: Verb,
  request: Request,
  signal: AbortSignal,
): Promise<Response> {
  const plan = await planStream(host, verb, request, false, signal);
  return plan.kind === 'refused' ? plan.response : text(500, 'Upgrade request required');
}

async function planStream(
  host: StreamingHost,
  verb: Verb,
  request: Request,
  canSplit: boolean,
  signal: AbortSignal,
): Promise<Plan> {
  const query = readQuery(verb, request);
  if (query.kind === 'wrong') return refused(400, query.message);
  const found = findPod(host, request);
  if (found.kind === 'refused') return found;
  const command = withContainerOf(found.pod, request.params['container'], query.value);
  const [main, separate] = canSplit ? splitAttach(command) : [command];
  try {
    const addressOf = async (each: StreamRequest) =>
      readAddress(await requestStreamUrl(host, found.pod, each, request, signal));
    const url = await addressOf(main);
    const stderrUrl = separate === undefined ? undefined : await addressOf(separate);
    return { kind: 'ready', url, stderrUrl, command };
  } catch (error) {
    return { kind: 'refused', response: runtimeRefusal(error) };
  }
}

function readAddress(address: string): URL {
  const url = URL.parse(
    /^[a-z][a-z\d+.-]*:\/\//i.test(address) ? address : `http://${address.replace(/^\/\//, '')}`,
  );
  if (url === null) throw new KubelingError('CRI_BAD_ANSWER', 'the container runtime returned no URL');
  return url;
}

/**
 * Attaches stderr separately: when stderr of an exited process closes before its stdout, containerd
 * closes the stdin of a client with all three streams attached and drops the rest of stdout.
 */
function splitAttach(command: StreamRequest): readonly [StreamRequest, StreamRequest?] {
  if (command.kind !== 'attach') return [command];
  const { streams } = command;
  if (!streams.stdin || !streams.stdout || !streams.stderr) return [command];
  return [
    { ...command, streams: { ...streams, stderr: false } },
    { ...command, streams: onlyStderr },
  ];
}

type StreamRequest =
  | { readonly kind: 'exec' | 'attach'; readonly streams: RequestedStreams; readonly afterInput: AfterInput }
  | { readonly kind: 'port-forward'; readonly ports: readonly number[] };

function readQuery(verb: Verb, { query, headers }: Request): ReadQuery<StreamRequest> {
  if (verb === 'portForward') {
    // Only WebSocket requests without the tunnel protocol need ports in the query; other protocols
    // send the port with each stream.
    const namesPorts = isWebSocket(headers) && !offeredProtocols(headers).includes(tunnelProtocol);
    const ports: ReadQuery<readonly number[]> = namesPorts ? readPorts(query) : { kind: 'read', value: [] };
    return ports.kind === 'wrong'
      ? ports
      : { kind: 'read', value: { kind: 'port-forward', ports: ports.value } };
  }
  const streams = readRequestedStreams(query);
  if (streams.kind === 'wrong') return streams;
  return { kind: 'read', value: { kind: verb, streams: streams.value, afterInput: 'listen' } };
}

/** Uses tty and stdinOnce of the container's spec, which are fixed at its creation. */
function withContainerOf(pod: Pod, container: string | undefined, command: StreamRequest): StreamRequest {
  if (command.kind !== 'attach') return command;
  const { containers, initContainers = [], ephemeralContainers = [] } = pod.spec;
  const all = [...containers, ...initContainers, ...ephemeralContainers];
  const { tty = false, stdinOnce = false } = all.find(({ name }) => name === container) ?? {};
  const streams = { ...command.streams, tty, stderr: command.streams.stderr && !tty };
  return { ...command, streams, afterInput: stdinOnce ? 'listen' : 'leave' };
}

function requestStreamUrl(
  host: StreamingHost,
  pod: Pod,
  command: StreamRequest,
  { params, query }: Request,
  signal: AbortSignal,
): Promise<string> {
  const container = params['container'] ?? '';
  switch (command.kind) {
    case 'exec':
      return host.exec(pod, container, query.getAll('command'), command.streams, signal);
    case 'attach':
      return host.attach(pod, container, command.streams, signal);
    case 'port-forward':
      return host.portForward(pod, command.ports, signal);
  }
}

type FoundPod =
  | { readonly kind: 'found'; readonly pod: Pod }
  | { readonly kind: 'refused'; readonly response: Response };

/** Finds the pod by name; a pod of the same name with another UID does not match. */
function findPod(host: StreamingHost, { params }: Request): FoundPod {
  const pod = host.getPodByName(params['namespace'] ?? '', params['pod'] ?? '');
  if (pod === undefined) return refused(404, 'pod does not exist');
  const uid = params['uid'];
  if (uid !== undefined && host.translatePodUid(uid as PodUid) !== pod.metadata.uid)
    return refused(404, 'pod not found');
  return { kind: 'found', pod };
}

async function run(host: StreamingHost, request: Request, signal: AbortSignal): Promise<Response> {
  const found = findPod(host, request);
  if (found.kind === 'refused') return found.response;
  const command = (request.query.get('cmd') ?? '').split(' ');
  try {
    const output = await host.run(found.pod, request.params['container'] ?? '', command, signal);
    return { status: 200, contentType: 'application/json', body: once(output) };
  } catch (error) {
    return text(500, messageOf(error));
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function refused(status: number, message: string): { readonly kind: 'refused'; readonly response: Response } {
  return { kind: 'refused', response: text(status, message) };
}

function runtimeRefusal(error: unknown): Response {
  const code = error instanceof KubelingError ? error.code : undefined;
  if (code === 'CRI_NOT_FOUND') return text(404, messageOf(error));
  if (code === 'CRI_EXHAUSTED') return { ...text(429, messageOf(error)), headers: { 'Retry-After': '60' } };
  return text(500, messageOf(error));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

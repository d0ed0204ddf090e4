/**
 * A third-party CSI driver in a separate process. Its volumes are directories of the machine, or
 * files as block devices, which it bind-mounts at the requested paths. Each call is a line in its
 * log; a control file makes calls fail or hang. usage: host-path-driver.ts <name> <folder>
 * <registration socket>
 */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { ServerUnaryCall, ServiceDefinition, sendUnaryData } from '@grpc/grpc-js';
import { CallLog, load, serve, serveRegistration } from '../plugin-parts.ts';

const [name = '', folder = '', registration = ''] = process.argv.slice(2);
const socket = join(folder, 'csi.sock');
const volumes = join(folder, 'volumes');
const limit = join(folder, 'limit');
const place = join(folder, 'place');
const deviceBytes = 16 * 1024 * 1024;

interface CsiRequest {
  readonly volume_id: string;
  readonly staging_target_path: string;
  readonly target_path: string;
  readonly volume_path: string;
  readonly capacity_range: { readonly required_bytes: string } | null;
  readonly readonly: boolean;
  readonly volume_context: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
  readonly volume_capability: { readonly block: object | null } | null;
}

type Work = (request: CsiRequest) => object;

const isMounted = (path: string) => readFileSync('/proc/self/mountinfo', 'utf8').includes(` ${path} `);

function bind(source: string, target: string, isReadOnly: boolean): void {
  mkdirSync(target, { recursive: true });
  if (isMounted(target)) return;
  execFileSync('mount', ['--bind', source, target]);
  if (isReadOnly) execFileSync('mount', ['-o', 'remount,bind,ro', target]);
}

function unbind(target: string): void {
  if (isMounted(target)) execFileSync('umount', [target]);
}

function contentOf({ volume_id }: CsiRequest): string {
  const path = join(volumes, volume_id);
  mkdirSync(path, { recursive: true });
  return path;
}

/** Returns the file that backs the block device of a volume. */
const imageOf = ({ volume_id }: CsiRequest) => join(volumes, `${volume_id}.img`);
const isDevice = ({ volume_capability }: CsiRequest) => (volume_capability?.block ?? null) !== null;

function deviceOf(request: CsiRequest): string {
  const found = execFileSync('losetup', ['--associated', imageOf(request)], { encoding: 'utf8' });
  return found.split(':')[0] ?? '';
}

function makeDevice(request: CsiRequest): void {
  if (!existsSync(imageOf(request))) writeFileSync(imageOf(request), Buffer.alloc(deviceBytes));
  if (deviceOf(request) === '') execFileSync('losetup', ['--find', imageOf(request)]);
}

function showDevice(request: CsiRequest): void {
  const target = request.target_path;
  if (deviceOf(request) === '') throw new Error(`${request.volume_id} is not staged`);
  if (isMounted(target)) return;
  writeFileSync(target, '');
  execFileSync('mount', ['--bind', deviceOf(request), target]);
}

const calls: Readonly<Record<string, Work>> = {
  NodeGetInfo: () => ({
    node_id: `${name}-node`,
    max_volumes_per_node: existsSync(limit) ? Number(readFileSync(limit, 'utf8')) : 7,
    accessible_topology: {
      segments: { [`topology.${name}/node`]: existsSync(place) ? readFileSync(place, 'utf8') : 'here' },
    },
  }),
  NodeGetCapabilities: () => ({
    capabilities: ['STAGE_UNSTAGE_VOLUME', 'EXPAND_VOLUME', 'GET_VOLUME_STATS', 'VOLUME_CONDITION'].map(
      (type) => ({ rpc: { type } }),
    ),
  }),
  NodeStageVolume: (request) => {
    if (isDevice(request)) {
      makeDevice(request);
      return {};
    }
    bind(contentOf(request), request.staging_target_path, false);
    return {};
  },
  NodeUnstageVolume: (request) => {
    const device = existsSync(imageOf(request)) ? deviceOf(request) : '';
    if (device !== '') execFileSync('losetup', ['--detach', device]);
    unbind(request.staging_target_path);
    return {};
  },
  NodePublishVolume: (request) => {
    const { staging_target_path: staged, target_path, volume_context, secrets } = request;
    if (isDevice(request)) {
      showDevice(request);
      return {};
    }
    const source = contentOf(request);
    if (staged === '') writeFileSync(join(source, 'told.json'), JSON.stringify({ volume_context, secrets }));
    if (staged !== '' && !isMounted(staged)) throw new Error(`${staged} is not staged`);
    bind(staged === '' ? source : staged, target_path, request.readonly);
    return {};
  },
  NodeUnpublishVolume: ({ target_path }) => {
    unbind(target_path);
    if (existsSync(target_path) && statSync(target_path).isFile()) rmSync(target_path);
    if (existsSync(target_path)) rmdirSync(target_path);
    return {};
  },
  NodeExpandVolume: (request) => {
    if (!isMounted(request.volume_path)) throw new Error(`${request.volume_path} is not published`);
    const bytes = request.capacity_range?.required_bytes ?? '0';
    if (isDevice(request)) {
      truncateSync(imageOf(request), Number(bytes));
      execFileSync('losetup', ['--set-capacity', deviceOf(request)]);
      return { capacity_bytes: bytes };
    }
    writeFileSync(join(contentOf(request), 'size'), `${bytes}\n`);
    return { capacity_bytes: bytes };
  },
  NodeGetVolumeStats: (request) => {
    if (!isMounted(request.volume_path)) throw new Error(`${request.volume_path} is not published`);
    if (existsSync(imageOf(request))) {
      const device = deviceOf(request);
      const total = execFileSync('blockdev', ['--getsize64', device], { encoding: 'utf8' }).trim();
      return { usage: [{ unit: 'BYTES', total }] };
    }
    const abnormal = existsSync(join(contentOf(request), 'broken'));
    return {
      usage: [
        { unit: 'BYTES', total: 1000, used: 300, available: 700 },
        { unit: 'INODES', total: 50, used: 20, available: 30 },
      ],
      volume_condition: { abnormal, message: abnormal ? 'it is broken' : 'fine' },
    };
  },
};

const log = new CallLog(folder);

function answer(method: string, work: Work) {
  return (call: ServerUnaryCall<CsiRequest, object>, done: sendUnaryData<object>) => {
    const { volume_id = '', target_path: target = '' } = call.request;
    log.add(`${method} ${volume_id} ${target}`);
    const expected = log.trouble(`${method} ${volume_id}`) ?? log.trouble(method);
    if (expected === 'hang') return;
    try {
      if (expected !== undefined) throw new Error(expected);
      done(null, work(call.request));
    } catch (error) {
      done({ code: 13, details: (error as Error).message });
    }
  };
}

mkdirSync(volumes, { recursive: true });
const { csi } = load('volumes/csi/proto/node.proto') as {
  readonly csi: { readonly v1: { readonly Node: { readonly service: ServiceDefinition } } };
};
const responses = Object.entries(calls).map(([method, work]) => [method, answer(method, work)]);
await serve(socket, csi.v1.Node.service, Object.fromEntries(responses));
await serveRegistration(
  registration,
  { type: 'CSIPlugin', name, endpoint: socket, supported_versions: ['1.0.0'] },
  log,
);

/**
 * A third-party device plugin in a separate process. A file in its folder, which it reads again at
 * SIGHUP, contains its devices and options; each call is a line in its log; a control file makes
 * calls fail or hang. usage: sample-plugin.ts <resource> <folder> <directory of device plugins>
 * [<plugin registry>]
 */
import { lstatSync, mkdirSync, readFileSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  credentials,
  Metadata,
  type ServerWritableStream,
  type ServiceClientConstructor,
  type ServiceDefinition,
} from '@grpc/grpc-js';
import { CallLog, load, serve, serveRegistration } from '../plugin-parts.ts';

const [resource = '', folder = '', directory = '', registry = ''] = process.argv.slice(2);
const endpoint = `${resource.replaceAll(/[^a-z0-9]/g, '-')}.sock`;

interface Offer {
  readonly devices: readonly { readonly id: string; readonly health?: string; readonly numa?: number }[];
  readonly preStart?: boolean;
  /** The devices that GetPreferredAllocation prefers. */
  readonly preferred?: readonly string[];
  /** Whether Allocate returns CDI device names. */
  readonly cdi?: boolean;
}

interface ContainerRequests {
  readonly container_requests: readonly { readonly devices_ids: readonly string[] }[];
}

const offer = (): Offer => JSON.parse(readFileSync(join(folder, 'offer.json'), 'utf8'));
const calls = new CallLog(folder);

const { v1beta1 } = load('resources/devices/proto/device_plugin.proto') as {
  readonly v1beta1: {
    readonly DevicePlugin: { readonly service: ServiceDefinition };
    readonly Registration: ServiceClientConstructor;
  };
};

const listeners = new Set<ServerWritableStream<object, object>>();

function listed(): object {
  const devices = offer().devices.map(({ id, health = 'Healthy', numa }) => ({
    ID: id,
    health,
    ...(numa === undefined ? {} : { topology: { nodes: [{ ID: numa }] } }),
  }));
  return { devices };
}

function responseFor(ids: readonly string[]): object {
  for (const id of ids) writeFileSync(join(folder, id), `I am ${id}\n`);
  return {
    envs: { [`${resource.split('/')[1]?.toUpperCase()}_DEVICES`]: ids.toSorted().join(',') },
    mounts: ids.map((id) => ({
      container_path: `/devices/${id}`,
      host_path: join(folder, id),
      read_only: true,
    })),
    devices: ids.map((id) => ({ container_path: `/dev/${id}`, host_path: '/dev/zero', permissions: 'rw' })),
    annotations: { 'devices.test/given': ids.toSorted().join(',') },
    cdi_devices: offer().cdi === true ? ids.map((id) => ({ name: `${resource}=${id}` })) : [],
  };
}

const responses: Readonly<Record<string, (request: never) => object>> = {
  GetDevicePluginOptions: () => {
    const { preStart = false, preferred } = offer();
    return { pre_start_required: preStart, get_preferred_allocation_available: preferred !== undefined };
  },
  GetPreferredAllocation: ({
    container_requests,
  }: {
    readonly container_requests: readonly {
      readonly available_deviceIDs: readonly string[];
      readonly must_include_deviceIDs: readonly string[];
      readonly allocation_size: number;
    }[];
  }) => ({
    container_responses: container_requests.map((request) => {
      const liked = (offer().preferred ?? []).filter((id) => request.available_deviceIDs.includes(id));
      const all = [...new Set([...request.must_include_deviceIDs, ...liked])];
      return { deviceIDs: all.slice(0, request.allocation_size) };
    }),
  }),
  Allocate: ({ container_requests }: ContainerRequests) => ({
    container_responses: container_requests.map(({ devices_ids }) => responseFor(devices_ids)),
  }),
  PreStartContainer: () => ({}),
};

function listAndWatch(stream: ServerWritableStream<object, object>): void {
  calls.add('ListAndWatch');
  const expected = calls.trouble('ListAndWatch');
  if (expected !== undefined) {
    stream.emit('error', { code: 2, details: expected });
    return;
  }
  listeners.add(stream);
  stream.on('cancelled', () => listeners.delete(stream));
  stream.write(listed());
}

async function servePlugin(at: string): Promise<void> {
  await serve(at, v1beta1.DevicePlugin.service, {
    ...Object.fromEntries(
      Object.entries(responses).map(([method, work]) => [method, calls.unary(method, work)]),
    ),
    ListAndWatch: listAndWatch,
  });
}

/** Registers the plugin with the kubelet. */
function register(): void {
  const kubelet = new v1beta1.Registration(
    `unix://${join(directory, 'kubelet.sock')}`,
    credentials.createInsecure(),
    // Uses a separate connection, because one shared with earlier clients of the same path may be
    // backing off.
    { 'grpc.use_local_subchannel_pool': 1 },
  );
  const metadata = new Metadata({ waitForReady: true });
  const request = { version: 'v1beta1', endpoint, resource_name: resource };
  kubelet['Register']?.(request, metadata, (error: { readonly details: string } | null) => {
    calls.add(error === null ? 'registered' : `refused: ${error.details}`);
    kubelet.close();
  });
}

async function serveForRegistration(): Promise<void> {
  const socket = join(folder, 'plugin.sock');
  await servePlugin(socket);
  const facts = {
    type: 'DevicePlugin',
    name: resource,
    endpoint: socket,
    supported_versions: ['v1beta1'],
  };
  await serveRegistration(join(registry, endpoint), facts, calls);
}

process.on('SIGHUP', () => {
  for (const stream of listeners) stream.write(listed());
});
mkdirSync(folder, { recursive: true });
if (registry !== '') await serveForRegistration();
else {
  // A starting kubelet removes all plugin sockets and creates its own, so the plugin then serves
  // and registers again.
  const kubelet = join(directory, 'kubelet.sock');
  let known = '';
  const look = async () => {
    const facts = lstatSync(kubelet, { bigint: true, throwIfNoEntry: false });
    const identity = facts === undefined ? '' : `${facts.ino} ${facts.birthtimeNs}`;
    if (identity === '' || identity === known) return;
    known = identity;
    await servePlugin(join(directory, endpoint));
    register();
  };
  watch(directory, () => void look());
  await look();
}

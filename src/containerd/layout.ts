import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { KubelingError } from '../lib/index.ts';

/** The paths of one private containerd; none is shared with another data directory. */
export interface Layout {
  readonly dataDir: string;
  /** The directory of the private containerd, below the data directory. */
  readonly dir: string;
  readonly config: string;
  readonly root: string;
  readonly state: string;
  /**
   * The directory with a subdirectory per sandbox ID; containers can write to their `resolv.conf`
   * and `hostname` in it.
   */
  readonly sandboxes: string;
  readonly socket: string;
  readonly ttrpcSocket: string;
  readonly log: string;
  readonly pidFile: string;
  readonly lockFile: string;
  /**
   * The file with the subnet and the snapshotter chosen at the first start: see `instance-file.ts`.
   */
  readonly instanceFile: string;
  readonly registryConfig: string;
  readonly cniConfDir: string;
  readonly cniConfFile: string;
  readonly ipamDir: string;
  /** The name of the CNI network and of its bridge. */
  readonly network: string;
  /** The parent cgroup of sandboxes that no kubelet manages; removed by teardown. */
  readonly cgroup: string;
}

/** The maximum length of a socket path: `sun_path` has 108 bytes including the terminator. */
const longestSocketPath = 107;

/** Returns the layout for an absolute, canonical data directory. */
export function containerdLayout(dataDir: string): Layout {
  const dir = join(dataDir, 'containerd');
  const layout: Layout = {
    dataDir,
    dir,
    config: join(dir, 'config.toml'),
    root: join(dir, 'root'),
    state: join(dir, 'state'),
    sandboxes: join(dir, 'root', 'io.containerd.grpc.v1.cri', 'sandboxes'),
    socket: join(dir, 'containerd.sock'),
    // The socket name is shorter than containerd's default, which would make the longest socket
    // path six bytes longer.
    ttrpcSocket: join(dir, 'ttrpc.sock'),
    log: join(dir, 'containerd.log'),
    pidFile: join(dir, 'containerd.pid'),
    lockFile: join(dir, 'lock'),
    instanceFile: join(dir, 'instance.json'),
    registryConfig: join(dir, 'certs.d'),
    cniConfDir: join(dir, 'cni', 'net.d'),
    cniConfFile: join(dir, 'cni', 'net.d', '10-kubeling.conflist'),
    ipamDir: join(dir, 'cni', 'ipam'),
    network: networkName(dataDir),
    cgroup: `/${networkName(dataDir)}`,
  };
  checkSocketPath(layout);
  return layout;
}

/**
 * Derives the network name from the directory: eleven characters, because interface names are
 * limited to fifteen.
 */
export function networkName(dataDir: string): string {
  return `klg${directoryHash(dataDir).slice(0, 8)}`;
}

export function directoryHash(dataDir: string): string {
  return createHash('sha256').update(dataDir).digest('hex');
}

function checkSocketPath({ socket, dataDir }: Layout): void {
  const length = Buffer.byteLength(socket);
  if (length <= longestSocketPath) return;
  const room = longestSocketPath - (length - Buffer.byteLength(dataDir));
  throw new KubelingError(
    'CONTAINERD_SOCKET_PATH',
    `Cannot put containerd under ${dataDir} as the path of its socket must be at most ${longestSocketPath} bytes: ` +
      `${socket} has ${length}. Use a data directory of at most ${room} bytes, such as /var/lib/kubeling`,
    { details: { socket, length } },
  );
}

import { join } from 'node:path';
import type { Layout } from './layout.ts';
import type { Architecture } from './oci-image.ts';
import { pauseImageName } from './pause-image.ts';
import { type TomlTable, toToml } from './toml.ts';
import type { ContainerdVersion } from './version.ts';

export type Snapshotter = 'overlayfs' | 'native';
export type CgroupDriver = 'cgroupfs' | 'systemd';

/** Facts about the machine that the config depends on. */
export interface ConfigFacts {
  readonly version: ContainerdVersion;
  readonly architecture: Architecture;
  readonly cniBinDir: string;
  readonly runc: string;
  /**
   * The path of crun, for an additional runtime handler with that name; undefined if it is not
   * installed.
   */
  readonly crun: string | undefined;
  readonly snapshotter: Snapshotter;
  readonly cgroupDriver: CgroupDriver;
  /**
   * Whether an oom_score_adj may be lowered. If not, containers that need a lower score than
   * containerd's cannot start.
   */
  readonly oomScore: 'free' | 'restricted';
}

/** The OOM score of containerd, which protects it from the OOM killer like a kubelet. */
const ownOomScore = -999;

const disabledPlugins = [
  ...['aufs', 'blockfile', 'btrfs', 'devmapper', 'erofs', 'zfs'].map(
    (name) => `io.containerd.snapshotter.v1.${name}`,
  ),
  // The opt plugin would create directories under /opt, outside the data directory.
  'io.containerd.internal.v1.opt',
  // The restart plugins run, as root, programs that are named in the labels of a container, and
  // these labels include those of its image.
  ...['io.containerd.internal.v1.restart', 'io.containerd.monitor.container.v1.restart'],
];

const requiredOfSecond = [
  'io.containerd.cri.v1.images',
  'io.containerd.cri.v1.runtime',
  'io.containerd.grpc.v1.cri',
];

/**
 * Returns the config file for the containerd version: format 2 for 1.6 and 1.7, format 3 for 2.x.
 */
export function containerdConfig(layout: Layout, facts: ConfigFacts): string {
  const isSecond = facts.version.major >= 2;
  return toToml({
    version: isSecond ? 3 : 2,
    root: layout.root,
    state: layout.state,
    imports: [],
    disabled_plugins: disabledPlugins,
    // Containerd must fail to start if one of the required plugins fails, because it would be
    // unusable without them.
    required_plugins: isSecond ? requiredOfSecond : ['io.containerd.grpc.v1.cri'],
    oom_score: facts.oomScore === 'free' ? ownOomScore : undefined,
    grpc: { address: layout.socket },
    ttrpc: { address: layout.ttrpcSocket },
    // Disables the metrics listener and the debug socket; only the streaming server has a port.
    metrics: { address: '' },
    plugins: isSecond ? pluginsOfSecond(layout, facts) : pluginsOfFirst(layout, facts),
  });
}

/** The plugin settings of containerd 1.x, which has a single CRI plugin. */
function pluginsOfFirst(layout: Layout, facts: ConfigFacts): TomlTable {
  return {
    'io.containerd.grpc.v1.cri': {
      ...streaming,
      ...runtimeBasics(facts),
      sandbox_image: pauseImageName,
      cni: { ...cniBinDir(facts), conf_dir: layout.cniConfDir, max_conf_num: 1 },
      containerd: { ...handlers(layout, facts), snapshotter: facts.snapshotter },
      registry: { config_path: layout.registryConfig },
    },
    ...(facts.version.minor >= 7 ? nri : {}),
  };
}

/**
 * The plugin settings of containerd 2.x, which has separate plugins for images, runtime and server.
 */
function pluginsOfSecond(layout: Layout, facts: ConfigFacts): TomlTable {
  return {
    'io.containerd.grpc.v1.cri': streaming,
    'io.containerd.cri.v1.images': {
      snapshotter: facts.snapshotter,
      pinned_images: { sandbox: pauseImageName },
      registry: { config_path: layout.registryConfig },
    },
    'io.containerd.cri.v1.runtime': {
      ...runtimeBasics(facts),
      cni: { ...cniBinDir(facts), conf_dir: layout.cniConfDir, max_conf_num: 1 },
      containerd: handlers(layout, facts),
    },
    ...transfer(facts),
    ...nri,
  };
}

const streaming: TomlTable = {
  disable_tcp_service: true,
  stream_server_address: '127.0.0.1',
  stream_server_port: '0',
};

/** NRI uses one well-known socket per machine, so it is disabled in a private containerd. */
const nri: TomlTable = { 'io.containerd.nri.v1.nri': { disable: true } };

function runtimeBasics(facts: ConfigFacts): TomlTable {
  return {
    restrict_oom_score_adj: facts.oomScore === 'restricted',
    netns_mounts_under_state_dir: true,
  };
}

/**
 * Returns the directories of CNI plugins: as the list `bin_dirs` since containerd 2.1, before as
 * `bin_dir`. Each version ignores the key of the other.
 */
function cniBinDir({ version, cniBinDir: dir }: ConfigFacts): TomlTable {
  const isList = version.major > 2 || (version.major === 2 && version.minor >= 1);
  return isList ? { bin_dirs: [dir] } : { bin_dir: dir };
}

function handlers(layout: Layout, facts: ConfigFacts): TomlTable {
  return {
    default_runtime_name: 'runc',
    runtimes: {
      runc: handler(facts.runc, join(layout.state, 'runc'), facts),
      ...(facts.crun === undefined ? {} : { crun: handler(facts.crun, join(layout.state, 'crun'), facts) }),
    },
  };
}

/**
 * Returns a runtime handler. Each OCI runtime has a separate state directory, because no OCI
 * runtime can read the state of another one.
 */
function handler(program: string, stateDir: string, facts: ConfigFacts): TomlTable {
  return {
    runtime_type: 'io.containerd.runc.v2',
    options: {
      BinaryName: program,
      Root: stateDir,
      SystemdCgroup: facts.cgroupDriver === 'systemd',
    },
  };
}

/**
 * containerd 2.x pulls images through the transfer service, which unpacks for overlayfs unless
 * another snapshotter is configured.
 */
function transfer({ snapshotter, architecture }: ConfigFacts): TomlTable {
  if (snapshotter === 'overlayfs') return {};
  const unpack = { platform: `linux/${architecture}`, snapshotter };
  return { 'io.containerd.transfer.v1.local': { unpack_config: [unpack] } };
}

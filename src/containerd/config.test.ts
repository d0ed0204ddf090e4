import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ConfigFacts, containerdConfig } from './config.ts';
import { containerdLayout } from './layout.ts';

const layout = containerdLayout('/data');

const facts: ConfigFacts = {
  version: { major: 1, minor: 6, text: '1.6.20' },
  architecture: 'amd64',
  cniBinDir: '/usr/lib/cni',
  runc: '/usr/sbin/runc',
  crun: undefined,
  snapshotter: 'overlayfs',
  cgroupDriver: 'cgroupfs',
  oomScore: 'restricted',
};

/** Returns each line together with its TOML table, as "table key = value". */
function lines(text: string): Set<string> {
  let table = '';
  const found = new Set<string>();
  for (const line of text.split('\n')) {
    if (line.startsWith('[')) table = `${line} `;
    else if (line !== '') found.add(table + line);
  }
  return found;
}

function configOf(changed: Partial<ConfigFacts>): Set<string> {
  return lines(containerdConfig(layout, { ...facts, ...changed }));
}

function assertHolds(config: Set<string>, ...expected: readonly string[]): void {
  for (const line of expected) assert(config.has(line), `${line}\nis not in\n${[...config].join('\n')}`);
}

const second = { version: { major: 2, minor: 4, text: '2.4.2' } };
const cri = '[plugins."io.containerd.grpc.v1.cri"';
const runtime = '[plugins."io.containerd.cri.v1.runtime"';
const images = '[plugins."io.containerd.cri.v1.images"';

describe('containerdConfig', () => {
  it('writes config version 2 with a single CRI plugin for containerd 1.x', () => {
    assertHolds(
      configOf({}),
      'version = 2',
      'root = "/data/containerd/root"',
      'state = "/data/containerd/state"',
      'required_plugins = ["io.containerd.grpc.v1.cri"]',
      '[grpc] address = "/data/containerd/containerd.sock"',
      '[ttrpc] address = "/data/containerd/ttrpc.sock"',
      `${cri}] sandbox_image = "localhost/kubeling/pause:1"`,
      `${cri}] netns_mounts_under_state_dir = true`,
      `${cri}] stream_server_address = "127.0.0.1"`,
      `${cri}] stream_server_port = "0"`,
      `${cri}.cni] bin_dir = "/usr/lib/cni"`,
      `${cri}.cni] conf_dir = "/data/containerd/cni/net.d"`,
      `${cri}.containerd] snapshotter = "overlayfs"`,
      `${cri}.containerd] default_runtime_name = "runc"`,
      `${cri}.containerd.runtimes.runc.options] BinaryName = "/usr/sbin/runc"`,
      `${cri}.registry] config_path = "/data/containerd/certs.d"`,
    );
  });

  it('writes config version 3 with separate CRI plugins for containerd 2.x', () => {
    assertHolds(
      configOf(second),
      'version = 3',
      'required_plugins = ["io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri"]',
      `${cri}] stream_server_address = "127.0.0.1"`,
      `${images}] snapshotter = "overlayfs"`,
      `${images}.pinned_images] sandbox = "localhost/kubeling/pause:1"`,
      `${images}.registry] config_path = "/data/containerd/certs.d"`,
      `${runtime}] netns_mounts_under_state_dir = true`,
      `${runtime}.cni] bin_dirs = ["/usr/lib/cni"]`,
      `${runtime}.containerd.runtimes.runc.options] Root = "/data/containerd/state/runc"`,
      '[plugins."io.containerd.nri.v1.nri"] disable = true',
    );
  });

  it('configures the CNI plugins of containerd 2.0 with bin_dir, which a list replaced in later versions', () => {
    const config = configOf({ version: { major: 2, minor: 0, text: '2.0.14' } });
    assertHolds(config, 'version = 3', `${runtime}.cni] bin_dir = "/usr/lib/cni"`);
  });

  it('disables NRI, whose socket is shared, for 1.7 but not for 1.6, which does not support it', () => {
    const disabled = '[plugins."io.containerd.nri.v1.nri"] disable = true';
    assertHolds(configOf({ version: { major: 1, minor: 7, text: '1.7.35' } }), disabled);
    assert(!configOf({}).has(disabled));
  });

  it('disables the restart plugin, which runs programs named by image labels', () => {
    for (const [facts, name] of [
      [{}, 'io.containerd.internal.v1.restart'],
      [second, 'io.containerd.monitor.container.v1.restart'],
    ] as const) {
      const disabled = [...configOf(facts)].find((line) => line.startsWith('disabled_plugins'));
      assert.ok(disabled?.includes(`"${name}"`), `${name} is not in ${disabled}`);
    }
  });

  it('restricts OOM scores of containers if containerd may not lower an OOM score', () => {
    assertHolds(configOf({}), `${cri}] restrict_oom_score_adj = true`);
    assertHolds(configOf(second), `${runtime}] restrict_oom_score_adj = true`);
    assert(![...configOf({})].some((line) => line.startsWith('oom_score')));
  });

  it('lowers the OOM score of containerd if permitted', () => {
    assertHolds(configOf({ oomScore: 'free' }), 'oom_score = -999', `${cri}] restrict_oom_score_adj = false`);
  });

  it('configures crun as a separate runtime handler if it is installed', () => {
    const options = 'containerd.runtimes.crun.options] BinaryName = "/usr/bin/crun"';
    assertHolds(configOf({ crun: '/usr/bin/crun' }), `${cri}.${options}`);
    assertHolds(configOf({ ...second, crun: '/usr/bin/crun' }), `${runtime}.${options}`);
    assert(![...configOf({})].some((line) => line.includes('crun')));
  });

  it('uses the systemd cgroup driver only if requested', () => {
    const options = `${cri}.containerd.runtimes.runc.options] SystemdCgroup =`;
    assertHolds(configOf({}), `${options} false`);
    assertHolds(configOf({ cgroupDriver: 'systemd' }), `${options} true`);
  });

  it('configures the transfer service of 2.x for the native snapshotter', () => {
    assertHolds(configOf({ snapshotter: 'native' }), `${cri}.containerd] snapshotter = "native"`);
    assertHolds(
      configOf({ ...second, snapshotter: 'native' }),
      `${images}] snapshotter = "native"`,
      '[[plugins."io.containerd.transfer.v1.local".unpack_config]] platform = "linux/amd64"',
      '[[plugins."io.containerd.transfer.v1.local".unpack_config]] snapshotter = "native"',
    );
  });
});

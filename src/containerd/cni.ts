/** What the conflist is made of. */
export interface CniNetwork {
  readonly network: string;
  readonly subnet: string;
  readonly ipamDir: string;
  /** Which tool the plugins must make their rules with; nothing leaves it to them. */
  readonly rules: 'iptables' | 'unspecified';
}

/** The plugins a pod's network needs; loopback is added by containerd itself. */
export const cniPlugins = ['bridge', 'host-local', 'loopback', 'portmap'] as const;

export const cniPluginDirs = ['/opt/cni/bin', '/usr/lib/cni', '/usr/libexec/cni'] as const;

/** One bridge for all pods of this data directory, masqueraded to the outside, with host ports. */
export function cniConflist({ network, subnet, ipamDir, rules }: CniNetwork): string {
  const isPinned = rules === 'iptables';
  const bridge = {
    type: 'bridge',
    bridge: network,
    isGateway: true,
    ipMasq: true,
    // Newer plugins may choose nftables by themselves; teardown must know where to look.
    ...(isPinned ? { ipMasqBackend: 'iptables' } : {}),
    hairpinMode: true,
    ipam: {
      type: 'host-local',
      dataDir: ipamDir,
      ranges: [[{ subnet }]],
      routes: [{ dst: '0.0.0.0/0' }],
    },
  };
  const portmap = {
    type: 'portmap',
    capabilities: { portMappings: true },
    ...(isPinned ? { backend: 'iptables' } : {}),
  };
  return `${JSON.stringify({ cniVersion: '0.4.0', name: network, plugins: [bridge, portmap] }, null, 2)}\n`;
}

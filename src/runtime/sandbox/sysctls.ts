import type { Pod } from '../../pods/index.ts';
import { goQuote } from '../containers/go-format.ts';

export interface SysctlRules {
  /** Release of the node's kernel, for example 6.1.0-18-amd64. */
  readonly kernelRelease: string;
  /** Allowed sysctls besides the safe ones; a trailing `*` matches any rest of the name. */
  readonly allowedUnsafe: readonly string[];
}

/**
 * Normalizes a sysctl name to dots as separators. In a name with slashes as separators, dots belong
 * to interface names, so dots and slashes are swapped.
 */
export function dottedSysctl(name: string): string {
  const [separator] = /[./]/.exec(name) ?? [];
  return separator === '/' ? name.replace(/[./]/g, (mark) => (mark === '/' ? '.' : '/')) : name;
}

/** Safe sysctls, with the first kernel version in which each of them is namespaced. */
const safe: readonly (readonly [name: string, since?: readonly [number, number]])[] = [
  ['kernel.shm_rmid_forced'],
  ['net.ipv4.ip_local_port_range'],
  ['net.ipv4.tcp_syncookies'],
  ['net.ipv4.ping_group_range'],
  ['net.ipv4.ip_unprivileged_port_start'],
  ['net.ipv4.ip_local_reserved_ports', [3, 16]],
  ['net.ipv4.tcp_keepalive_time', [4, 5]],
  ['net.ipv4.tcp_fin_timeout', [4, 6]],
  ['net.ipv4.tcp_keepalive_intvl', [4, 5]],
  ['net.ipv4.tcp_keepalive_probes', [4, 5]],
  ['net.ipv4.tcp_rmem', [4, 15]],
  ['net.ipv4.tcp_wmem', [4, 15]],
];

/** Why the pod's sysctls are rejected; undefined when they are allowed. */
export function sysctlProblem({ spec }: Pod, rules: SysctlRules): string | undefined {
  for (const { name, value } of spec.securityContext?.sysctls ?? []) {
    const sysctl = dottedSysctl(name);
    const shared = sharedNamespace(sysctl, spec);
    if (!isAllowed(sysctl, rules)) return `forbidden sysctl: ${goQuote(sysctl)} not allowlisted`;
    // CVE-2022-0811: CRI-O read the text after a plus sign as another sysctl, which it set on the
    // host.
    if (value.includes('+')) return `forbidden sysctl: ${goQuote(sysctl)} must not have a + in its value`;
    if (shared === undefined) continue;
    return `forbidden sysctl: ${goQuote(sysctl)} not allowed with host ${shared} enabled`;
  }
  return undefined;
}

function isAllowed(sysctl: string, { kernelRelease, allowedUnsafe }: SysctlRules): boolean {
  const isSafe = safe.some(([name, since]) => name === sysctl && isAtLeast(kernelRelease, since));
  return isSafe || allowedUnsafe.some((pattern) => matches(sysctl, dottedSysctl(pattern)));
}

function matches(sysctl: string, pattern: string): boolean {
  const star = pattern.indexOf('*');
  return star < 0 ? sysctl === pattern : sysctl.startsWith(pattern.slice(0, star));
}

function isAtLeast(release: string, since: readonly [number, number] = [0, 0]): boolean {
  const [, major = '0', minor = '0'] = /^(\d+)\.(\d+)/.exec(release) ?? [];
  const newer = Number(major) - since[0];
  return newer > 0 || (newer === 0 && Number(minor) >= since[1]);
}

/**
 * The namespace to which the sysctl belongs if the pod shares it with the host, so that the sysctl
 * would change the host; otherwise undefined.
 */
function sharedNamespace(sysctl: string, { hostNetwork, hostIPC }: Pod['spec']): 'Net' | 'IPC' | undefined {
  if (sysctl.startsWith('net.')) return hostNetwork === true ? 'Net' : undefined;
  return hostIPC === true ? 'IPC' : undefined;
}

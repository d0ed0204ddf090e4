import { isIPv6 } from 'node:net';
import type { PodDNSConfig } from '../../kinds/index.ts';
import { KubelingError } from '../../lib/index.ts';
import { describePod, type Pod, type PodEvent } from '../../pods/index.ts';

/** The cluster's DNS servers; `no-cluster` on a standalone node, which is expected to have none. */
export type ClusterDns = readonly string[] | 'no-cluster';

export interface DnsSettings {
  readonly clusterDns: ClusterDns;
  /** The cluster's DNS domain; empty when there is none. */
  readonly clusterDomain: string;
  readonly nodeIps: readonly string[];
  /**
   * Text of the node's resolv.conf; undefined when the kubelet is configured without a resolv.conf.
   */
  readonly resolvConf: string | undefined;
}

export interface PodDns {
  readonly config: ResolverConfig;
  /** Events to record on the pod. */
  readonly events: readonly PodEvent[];
  /** Events to record on the node. */
  readonly nodeEvents: readonly PodEvent[];
}

const mostServers = 3;
const mostSearches = 32;
const longestSearch = 253;
const longestSearchLine = 2048;

/**
 * Computes the pod's resolver configuration. Throws SANDBOX_CONFIG when the node's resolv.conf is
 * invalid.
 */
export function podDns(pod: Pod, settings: DnsSettings): PodDns {
  const { base, missing } = baseConfig(pod, settings);
  const whole = withPodConfig(base, pod.spec.dnsConfig);
  const servers = limitServers(whole.servers);
  const searches = limitSearches(whole.searches);
  return {
    config: { servers: servers.kept, searches: searches.kept, options: whole.options },
    events: [
      ...missing.map((message) => warning('MissingClusterDNS', `pod: "${describePod(pod)}". ${message}`)),
      ...[...servers.complaints, ...searches.complaints].map((message) =>
        warning('DNSConfigForming', message),
      ),
    ],
    nodeEvents: missing.map((message) => warning('MissingClusterDNS', message)),
  };
}

function warning(reason: string, message: string): PodEvent {
  return { type: 'Warning', reason, message };
}

type DnsMode = 'nothing' | 'cluster' | 'host';

/** An unknown DNS policy counts as ClusterFirst. */
function dnsMode({ spec }: Pod): DnsMode {
  switch (spec.dnsPolicy) {
    case 'None':
      return 'nothing';
    case 'Default':
      return 'host';
    case 'ClusterFirst':
      return spec.hostNetwork === true ? 'host' : 'cluster';
    default:
      return 'cluster';
  }
}

function baseConfig(pod: Pod, settings: DnsSettings): { base: ResolverConfig; missing: string[] } {
  const requiredMode = dnsMode(pod);
  if (requiredMode === 'nothing') return { base: { servers: [], searches: [], options: [] }, missing: [] };
  const host = hostConfig(settings);
  const { clusterDns } = settings;
  if (requiredMode === 'host' || clusterDns === 'no-cluster') return { base: host, missing: [] };
  if (clusterDns.length > 0) return { base: clusterConfig(pod, clusterDns, settings, host), missing: [] };
  const message =
    'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.';
  return { base: host, missing: [message] };
}

/**
 * Uses loopback name servers when resolv.conf is disabled, because the runtime would otherwise use
 * the host's resolv.conf.
 */
function hostConfig({ resolvConf, nodeIps }: DnsSettings): ResolverConfig {
  if (resolvConf !== undefined) return parseResolvConf(resolvConf);
  const local = nodeIps.map((ip) => (isIPv6(ip) ? '::1' : '127.0.0.1'));
  return { servers: local.length > 0 ? local : ['127.0.0.1'], searches: ['.'], options: [] };
}

/**
 * Uses the cluster's name servers only: they forward queries for other names, so the host's servers
 * are not added.
 */
function clusterConfig(
  pod: Pod,
  servers: readonly string[],
  settings: DnsSettings,
  host: ResolverConfig,
): ResolverConfig {
  const domain = settings.clusterDomain;
  const ours = domain === '' ? [] : [`${pod.metadata.namespace}.svc.${domain}`, `svc.${domain}`, domain];
  const hosts = settings.resolvConf === undefined ? [] : host.searches;
  return { servers, searches: unique([...ours, ...hosts]), options: ['ndots:5'] };
}

function withPodConfig(base: ResolverConfig, own: PodDNSConfig | undefined): ResolverConfig {
  if (own === undefined) return base;
  const options = (own.options ?? []).map(({ name = '', value = '' }) =>
    value === '' ? name : `${name}:${value}`,
  );
  return {
    servers: unique([...base.servers, ...(own.nameservers ?? [])]),
    searches: unique([...base.searches, ...(own.searches ?? [])]),
    options: mergeOptions([...base.options, ...options]),
  };
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}

interface Limited {
  readonly kept: readonly string[];
  readonly complaints: readonly string[];
}

function limitServers(servers: readonly string[]): Limited {
  if (servers.length <= mostServers) return { kept: servers, complaints: [] };
  const kept = servers.slice(0, mostServers);
  const message = `Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: ${kept.join(' ')}`;
  return { kept, complaints: [message] };
}

/** Omits search domains beyond the limit, because common resolvers crash on longer lists. */
function limitSearches(searches: readonly string[]): Limited {
  const kept = searches.slice(0, mostSearches).filter((domain) => domain.length <= longestSearch);
  while (kept.join(' ').length > longestSearchLine) kept.pop();
  if (kept.length === searches.length) return { kept, complaints: [] };
  const message = `Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${kept.join(' ')}`;
  return { kept, complaints: [message] };
}

/** Returns events for limits that the node's resolv.conf exceeds; called once at start. */
export function checkResolvConf(path: string, text: string, clusterDomain: string): string | undefined {
  const { searches } = parseResolvConf(text);
  const most = mostSearches - (clusterDomain === '' ? 0 : 3);
  const about = `Resolv.conf file '${path}' contains`;
  if (searches.length > most) return `${about} search line consisting of more than ${most} domains!`;
  if (searches.some((domain) => domain.length > longestSearch)) {
    return `${about} a search path which length is more than allowed ${longestSearch} chars!`;
  }
  return searches.join(' ').length > longestSearchLine
    ? `${about} search line which length is more than allowed ${longestSearchLine} chars!`
    : undefined;
}

/** Resolver configuration of a pod. */
export interface ResolverConfig {
  readonly servers: readonly string[];
  readonly searches: readonly string[];
  readonly options: readonly string[];
}

/**
 * Parses resolv.conf: name servers are merged, the last search line counts, and later options
 * override earlier ones of the same name.
 */
export function parseResolvConf(text: string): ResolverConfig {
  const servers: string[] = [];
  let searches: string[] = [];
  const options: string[] = [];
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line.trim().split(/\s+/);
    if (keyword === 'nameserver') servers.push(serverIn(values));
    // Removes the trailing dot, so that equal domains are not counted twice.
    if (keyword === 'search') searches = values.filter((name) => name !== '.').map(withoutDot);
    if (keyword === 'options') options.push(...values);
  }
  return { servers, searches, options: mergeOptions(options) };
}

function serverIn([address]: readonly string[]): string {
  if (address !== undefined) return address;
  throw new KubelingError(
    'SANDBOX_CONFIG',
    'Encountered error while parsing resolv conf file. Error: nameserver list is empty',
  );
}

function withoutDot(domain: string): string {
  return domain.endsWith('.') ? domain.slice(0, -1) : domain;
}

/**
 * Merges options such as `ndots:5`: a later option replaces an earlier one of the same name, at the
 * position of the earlier one.
 */
function mergeOptions(options: readonly string[]): string[] {
  return [...new Map(options.map((option) => [optionName(option), option])).values()];
}

function optionName(option: string): string {
  return option.split(':', 1)[0] ?? option;
}

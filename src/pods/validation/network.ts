import type { FieldPath, PodDNSConfig, PodSpec } from '../../kinds/index.ts';
import { dnsSubdomain, ipAddress, looseSubdomain } from './names.ts';
import { checkForm, missing, named, type Report, refuse, tooLong, wrong } from './report.ts';

const longestHostname = 64;

export function checkHostAliases(report: Report, path: FieldPath, aliases: PodSpec['hostAliases']): void {
  aliases?.forEach((alias, index) => {
    const at = path.index(index);
    checkForm(report, at.child('ip'), alias.ip, ipAddress);
    alias.hostnames?.forEach((name, position) => {
      checkForm(report, at.child('hostnames').index(position), name, dnsSubdomain);
    });
  });
}

export function checkHostnameOverride(report: Report, path: FieldPath, spec: PodSpec): void {
  const { hostnameOverride: name } = spec;
  if (name === undefined) return;
  if (spec.setHostnameAsFQDN === true)
    refuse(report, path, 'may not be specified when setHostnameAsFQDN is true');
  if (spec.hostNetwork === true) refuse(report, path, 'may not be specified when hostNetwork is true');
  if (name.length > longestHostname) tooLong(report, path, longestHostname);
  checkForm(report, path, name, dnsSubdomain);
}

/** Limits of name resolution in the C library. */
const mostServers = 3;
const mostSearches = 32;
const longestSearchList = 2048;

export function checkDns(report: Report, path: FieldPath, { dnsConfig, dnsPolicy }: PodSpec): void {
  if (dnsPolicy === 'None' && dnsConfig === undefined)
    missing(report, path, 'must provide `dnsConfig` when `dnsPolicy` is None');
  else if (dnsPolicy === 'None' && (dnsConfig?.nameservers ?? []).length === 0)
    missing(
      report,
      path.child('nameservers'),
      'must provide at least one DNS nameserver when `dnsPolicy` is None',
    );
  else if (dnsConfig !== undefined) checkDnsConfig(report, path, dnsConfig);
}

function checkDnsConfig(report: Report, path: FieldPath, config: PodDNSConfig): void {
  const { nameservers = [], searches = [], options = [] } = config;
  if (nameservers.length > mostServers)
    wrong(
      report,
      path.child('nameservers'),
      nameservers,
      `must not have more than ${mostServers} nameservers`,
    );
  nameservers.forEach((server, index) => {
    checkForm(report, path.child('nameservers').index(index), server, ipAddress);
  });
  if (searches.length > mostSearches)
    wrong(report, path.child('searches'), searches, `must not have more than ${mostSearches} search paths`);
  if (searches.join(' ').length > longestSearchList)
    wrong(
      report,
      path.child('searches'),
      searches,
      `must not have more than ${longestSearchList} characters (including spaces) in the search list`,
    );
  searches.forEach((search, index) => {
    if (search !== '.')
      checkForm(report, path.child('searches').index(index), search.replace(/\.$/, ''), looseSubdomain);
  });
  options.forEach((option, index) => {
    const at = path.child('options').index(index);
    if (!option.name) missing(named(report, at), at.child('name'), 'must not be empty');
  });
}

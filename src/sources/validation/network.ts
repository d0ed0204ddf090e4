import type { FieldPath, PodDNSConfig, PodSpec } from '../../kinds/index.ts';
import { dnsLabel, dnsSubdomain, ipAddress, looseSubdomain } from './names.ts';
import { checkChoice, checkName, checkPresent, checkText, missing, type Report, refuse } from './report.ts';

const dnsPolicies = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'];
const longestHostname = 64;

/** Names and addresses a pod has and knows. */
export function checkNetwork(report: Report, path: FieldPath, spec: PodSpec): void {
  checkChoice(report, path.child('dnsPolicy'), spec.dnsPolicy, { of: dnsPolicies, absent: 'refused' });
  checkDns(report, path.child('dnsConfig'), spec);
  checkText(report, path.child('hostname'), spec.hostname, dnsLabel);
  checkText(report, path.child('subdomain'), spec.subdomain, dnsLabel);
  checkHostnameOverride(report, path.child('hostnameOverride'), spec);
  spec.hostAliases?.forEach((alias, index) => {
    const at = path.child('hostAliases').index(index);
    checkName(report, at.child('ip'), alias.ip, ipAddress);
    alias.hostnames?.forEach((name, position) => {
      checkName(report, at.child('hostnames').index(position), name, dnsSubdomain);
    });
  });
}

function checkHostnameOverride(report: Report, path: FieldPath, spec: PodSpec): void {
  const { hostnameOverride: name } = spec;
  if (name === undefined) return;
  if (spec.setHostnameAsFQDN === true) refuse(report, path, 'while setHostnameAsFQDN is true');
  if (spec.hostNetwork === true) refuse(report, path, 'while hostNetwork is true');
  if (name.length > longestHostname) report(path, `must be at most ${longestHostname} characters long`);
  checkName(report, path, name, dnsSubdomain);
}

/** Limits of name resolution in the C library. */
const mostServers = 3;
const mostSearches = 32;
const longestSearchList = 2048;

function checkDns(report: Report, path: FieldPath, { dnsConfig, dnsPolicy }: PodSpec): void {
  if (dnsPolicy === 'None' && (dnsConfig?.nameservers ?? []).length === 0)
    missing(report, path.child('nameservers'), 'while dnsPolicy is None');
  if (dnsConfig !== undefined) checkDnsConfig(report, path, dnsConfig);
}

function checkDnsConfig(report: Report, path: FieldPath, config: PodDNSConfig): void {
  const { nameservers = [], searches = [], options = [] } = config;
  if (nameservers.length > mostServers) report(path.child('nameservers'), `must be at most ${mostServers}`);
  nameservers.forEach((server, index) => {
    checkName(report, path.child('nameservers').index(index), server, ipAddress);
  });
  if (searches.length > mostSearches) report(path.child('searches'), `must be at most ${mostSearches}`);
  if (searches.join(' ').length > longestSearchList)
    report(path.child('searches'), `must be at most ${longestSearchList} characters long together`);
  searches.forEach((search, index) => {
    if (search !== '.')
      checkName(report, path.child('searches').index(index), search.replace(/\.$/, ''), looseSubdomain);
  });
  options.forEach((option, index) => {
    checkPresent(report, path.child('options').index(index).child('name'), option.name);
  });
}

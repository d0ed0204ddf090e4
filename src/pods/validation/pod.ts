import type { PodDNSConfig } from '../../kinds/index.ts';
import { FieldPath, type KindTable, type PodSpec, type Pod as WrittenPod } from '../../kinds/index.ts';
import type { FeatureGate, FieldProblem, PodRules } from '../rules.ts';
import { checkAgreement, checkSpecialAnnotations } from './annotations.ts';
import {
  type ContainerContext,
  checkContainers,
  checkEphemeralContainers,
  checkImageSpaces,
  checkInitContainers,
  checkPortsOfNode,
} from './containers.ts';
import { checkLabels, checkMetadata } from './metadata.ts';
import { dnsLabel, dnsSubdomain, ipAddress, looseSubdomain } from './names.ts';
import {
  checkChoice,
  checkForm,
  checkName,
  checkRange,
  checkText,
  missing,
  named,
  notThere,
  type Report,
  refuse,
  repeated,
  tooLong,
  wrong,
} from './report.ts';
import { checkOverhead, checkPodResources } from './resources.ts';
import { checkAffinity, checkGates, checkSpread, checkTolerations } from './scheduling.ts';
import { checkPodSecurity, checkUserNamespace } from './security.ts';
import { checkVolumes } from './volumes.ts';
import { checkHostProcess, checkSystem } from './windows.ts';

const metadataPath = FieldPath.root.child('metadata');
const specPath = FieldPath.root.child('spec');

/** Validates a new pod like the API server. Defaults, node and namespace must be set already. */
export function validatePod(
  pod: WrittenPod & { readonly spec: PodSpec },
  rules: PodRules,
  table: KindTable,
): readonly FieldProblem[] {
  const problems = [...validateStoredPod(pod, rules, table)];
  checkNew((problem) => problems.push(problem), pod.spec, pod.metadata?.annotations ?? {});
  return problems;
}

/** The validation rules that apply to new pods and to updates of existing ones. */
export function validateStoredPod(
  pod: WrittenPod & { readonly spec: PodSpec },
  rules: PodRules,
  table: KindTable,
): readonly FieldProblem[] {
  const problems: FieldProblem[] = [];
  const report: Report = (problem) => {
    problems.push(problem);
  };
  const { metadata = {}, spec } = pod;
  const context = { spec, table, enabled: rules.enabled };
  checkMetadata(report, metadataPath, metadata);
  checkSpecialAnnotations(report, metadataPath.child('annotations'), metadata.annotations ?? {}, context);
  checkSpec(report, spec, metadata.name ?? '', rules);
  return problems;
}

/** The rules run in the order of the API server, so that their errors can be compared. */
function checkSpec(report: Report, spec: PodSpec, podName: string, { enabled }: PodRules): void {
  if (spec.terminationGracePeriodSeconds === undefined)
    missing(report, specPath.child('terminationGracePeriodSeconds'));
  const context: ContainerContext = {
    spec,
    enabled,
    volumes: checkVolumes(report, specPath.child('volumes'), spec, podName),
    graceSeconds: spec.terminationGracePeriodSeconds,
    os: spec.os?.name ?? '',
  };
  checkResourceClaims(report, spec);
  checkContainers(report, specPath, context);
  checkInitContainers(report, specPath, context);
  checkEphemeralContainers(report, specPath, context);
  if (enabled('PodLevelResources')) checkPodResources(report, spec, specPath);
  if (spec.hostNetwork === true) checkPortsOfNode(report, specPath.child('containers'), spec.containers);
  checkPolicies(report, spec);
  checkLabels(report, specPath.child('nodeSelector'), spec.nodeSelector);
  checkPodSecurity(report, spec, specPath);
  checkAffinity(report, specPath.child('affinity'), spec.affinity);
  checkDns(report, specPath.child('dnsConfig'), spec);
  checkGates(report, specPath, spec);
  checkSpread(report, specPath.child('topologySpreadConstraints'), spec.topologySpreadConstraints);
  checkHostProcess(report, spec, specPath);
  const network = enabled('UserNamespacesHostNetworkSupport') ? 'allowed' : 'refused';
  checkUserNamespace(report, spec, specPath, network);
  checkRest(report, spec, enabled);
}

const longestDeadline = 2 ** 31 - 1;

function checkPolicies(report: Report, spec: PodSpec): void {
  const of = ['Always', 'OnFailure', 'Never'];
  checkChoice(report, specPath.child('restartPolicy'), spec.restartPolicy, { of, absent: 'refused' });
  const dns = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'];
  checkChoice(report, specPath.child('dnsPolicy'), spec.dnsPolicy, { of: dns, absent: 'refused' });
}

function checkRest(report: Report, spec: PodSpec, enabled: FeatureGate): void {
  checkHostnameOverride(report, specPath.child('hostnameOverride'), spec);
  checkText(report, specPath.child('serviceAccountName'), spec.serviceAccountName, dnsSubdomain);
  checkText(report, specPath.child('nodeName'), spec.nodeName, dnsSubdomain);
  const deadline = specPath.child('activeDeadlineSeconds');
  checkRange(report, deadline, spec.activeDeadlineSeconds, [1, longestDeadline]);
  checkText(report, specPath.child('hostname'), spec.hostname, dnsLabel);
  checkText(report, specPath.child('subdomain'), spec.subdomain, dnsLabel);
  checkTolerations(report, specPath.child('tolerations'), spec.tolerations, enabled);
  checkHostAliases(report, specPath.child('hostAliases'), spec.hostAliases);
  checkText(report, specPath.child('priorityClassName'), spec.priorityClassName, dnsSubdomain);
  if (spec.runtimeClassName !== undefined)
    checkForm(report, specPath.child('runtimeClassName'), spec.runtimeClassName, dnsSubdomain);
  const of = ['PreemptLowerPriority', 'Never'];
  if (spec.preemptionPolicy !== undefined)
    checkChoice(report, specPath.child('preemptionPolicy'), spec.preemptionPolicy, { of, absent: 'refused' });
  checkOverhead(report, specPath.child('overhead'), spec.overhead);
  checkSystem(report, spec, specPath);
  const group = spec.schedulingGroup;
  if (group)
    checkName(report, specPath.child('schedulingGroup', 'podGroupName'), group.podGroupName, dnsSubdomain);
  checkFileKeyVolumes(report, spec);
  checkTokens(report, spec);
  checkImageSpaces(report, specPath.child('containers'), spec.containers);
  checkImageSpaces(report, specPath.child('initContainers'), spec.initContainers);
}

/** The validation rules for new pods only. */
function checkNew(report: Report, spec: PodSpec, annotations: Readonly<Record<string, string>>): void {
  if ((spec.ephemeralContainers ?? []).length > 0)
    refuse(report, specPath.child('ephemeralContainers'), 'cannot be set on create');
  if (spec.nodeName && (spec.schedulingGates ?? []).length > 0)
    refuse(report, specPath.child('nodeName'), 'cannot be set until all schedulingGates have been cleared');
  checkAgreement(report, annotations, spec, specPath);
}

/** Variables with a fileKeyRef must refer to emptyDir volumes of the pod. */
function checkFileKeyVolumes(report: Report, spec: PodSpec): void {
  const volumes = new Map(spec.volumes?.map((volume) => [volume.name, volume]));
  for (const list of ['initContainers', 'containers', 'ephemeralContainers'] as const)
    spec[list]?.forEach((container, index) => {
      container.env?.forEach((variable, position) => {
        const name = variable.valueFrom?.fileKeyRef?.volumeName;
        if (!name || volumes.get(name)?.emptyDir !== undefined) return;
        const env = specPath.child(list).index(index).child('env').index(position);
        const at = env.child('valueFrom', 'fileKeyRef', 'volumeName');
        if (volumes.has(name)) wrong(report, at, name, 'referenced volume must be of type emptyDir');
        else notThere(report, at, name);
      });
    });
}

function checkResourceClaims(report: Report, spec: PodSpec): void {
  const names = new Set<string>();
  spec.resourceClaims?.forEach((claim, index) => {
    const at = specPath.child('resourceClaims').index(index);
    const { name, resourceClaimName, resourceClaimTemplateName } = claim;
    checkName(report, at.child('name'), name, dnsLabel);
    if (name && names.has(name)) repeated(report, at.child('name'), name);
    names.add(name);
    if (resourceClaimName !== undefined && resourceClaimTemplateName !== undefined)
      wrong(
        report,
        at,
        claim,
        'at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified',
      );
    if (resourceClaimName === undefined && resourceClaimTemplateName === undefined)
      wrong(report, at, claim, 'must specify one of: `resourceClaimName`, `resourceClaimTemplateName`');
    checkText(report, at.child('resourceClaimName'), resourceClaimName, dnsSubdomain);
    checkText(report, at.child('resourceClaimTemplateName'), resourceClaimTemplateName, dnsSubdomain);
  });
}

/** A projected token requires a service account. */
function checkTokens(report: Report, spec: PodSpec): void {
  if (spec.serviceAccountName) return;
  spec.volumes?.forEach((volume, index) => {
    volume.projected?.sources.forEach((source, position) => {
      const at = specPath.child('volumes').index(index).child('projected', 'sources').index(position);
      if (source.serviceAccountToken !== undefined)
        refuse(
          report,
          at.child('serviceAccountToken'),
          'must not be specified when serviceAccountName is not set',
        );
    });
  });
}

const longestHostname = 64;

function checkHostAliases(report: Report, path: FieldPath, aliases: PodSpec['hostAliases']): void {
  aliases?.forEach((alias, index) => {
    const at = path.index(index);
    checkForm(report, at.child('ip'), alias.ip, ipAddress);
    alias.hostnames?.forEach((name, position) => {
      checkForm(report, at.child('hostnames').index(position), name, dnsSubdomain);
    });
  });
}

function checkHostnameOverride(report: Report, path: FieldPath, spec: PodSpec): void {
  const { hostnameOverride: name } = spec;
  if (name === undefined) return;
  if (spec.setHostnameAsFQDN === true)
    refuse(report, path, 'may not be specified when setHostnameAsFQDN is true');
  if (spec.hostNetwork === true) refuse(report, path, 'may not be specified when hostNetwork is true');
  if (name.length > longestHostname) tooLong(report, path, longestHostname);
  checkForm(report, path, name, dnsSubdomain);
}

/** The limits of the C library's DNS resolver. */
const mostServers = 3;
const mostSearches = 32;
const longestSearchList = 2048;

function checkDns(report: Report, path: FieldPath, { dnsConfig, dnsPolicy }: PodSpec): void {
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

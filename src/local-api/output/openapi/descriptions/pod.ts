/** Descriptions of pods, without their containers and volumes. */
export const podDescriptions = `
Pod: Containers that run together on one node and share an address and volumes.
 spec: The desired state of the pod.
 status: The observed state of the pod; written by the kubelet of its node.
PodSpec: The desired state of a pod.
 volumes: What containers of the pod may mount.
 initContainers: Containers that run one after the other before the others start. One with restartPolicy Always is a sidecar: it goes on beside the others.
 containers: The containers that do the work. There is at least one, and after creation none comes or goes.
 ephemeralContainers: Debugging containers, added through the ephemeralcontainers subresource.
 restartPolicy: When containers that ended are started again.
 terminationGracePeriodSeconds: How many seconds containers have to end by themselves before they are killed.
 activeDeadlineSeconds: After how many seconds the pod is failed and its containers are ended, whatever they do.
 dnsPolicy: Where names are looked up: by the cluster, by the node, or only as dnsConfig says.
 nodeSelector: Labels that a node must have for the pod to run there.
 serviceAccountName: The ServiceAccount that the pod speaks to the API with.
 serviceAccount: The older name of serviceAccountName.
 automountServiceAccountToken: Whether containers get a token of the ServiceAccount as a file.
 nodeName: The node the pod is bound to; set when the pod has found its node.
 hostNetwork: Whether the pod uses the network of its node instead of one of its own.
 hostPID: Whether containers see the processes of the node.
 hostIPC: Whether containers share the memory segments and queues of the node.
 shareProcessNamespace: Whether the containers of the pod see the processes of each other.
 securityContext: The user, group and privileges with which all containers of the pod run, unless they say otherwise.
 imagePullSecrets: Secrets with credentials of registries that images of this pod come from.
 hostname: The name that containers know their machine by; the name of the pod by default.
 subdomain: The domain that stands behind the hostname.
 affinity: Near what the pod should run, and near what it should not.
 schedulerName: Who finds a node for the pod.
 tolerations: Taints of nodes that do not keep the pod away.
 hostAliases: Lines that are added to /etc/hosts of the containers.
 priorityClassName: The PriorityClass that says how important the pod is.
 priority: How important the pod is; found from its class.
 dnsConfig: Servers, domains and options for looking up names, besides those of dnsPolicy.
 readinessGates: Conditions that must hold besides ready containers for the pod to be ready.
 runtimeClassName: The RuntimeClass that says by what the containers are run.
 enableServiceLinks: Whether containers get variables with the addresses of services.
 preemptionPolicy: Whether the pod may preempt pods of lower priority.
 overhead: What the pod takes besides its containers; found from its RuntimeClass.
 topologySpreadConstraints: How pods like this one are spread over nodes, zones and the like.
 setHostnameAsFQDN: Whether the hostname has its whole domain behind it.
 os: The operating system the containers are made for.
 hostUsers: Whether users in containers are those of the node; with false they are others.
 schedulingGates: What must be lifted before a node is looked for.
 resourceClaims: Claims of devices that containers of the pod refer to.
 resources: What all containers of the pod together are given and may take.
 hostnameOverride: A hostname that is taken as it is, and that nothing is added to.
 schedulingGroup: The group of pods that find their nodes together.
PodStatus: The observed state of a pod.
 observedGeneration: Up to which generation of the pod this was made.
 phase: The phase of the pod.
 conditions: The current conditions of the pod.
 message: A human-readable explanation of the state of the pod.
 reason: The reason of the state of the pod in one machine-readable word.
 nominatedNodeName: A node on which less important pods make room for this one.
 hostIP: The address of the node.
 hostIPs: The addresses of the node.
 podIP: The address of the pod.
 podIPs: The addresses of the pod, at most one of each family.
 startTime: When the kubelet admitted the pod.
 initContainerStatuses: The observed state of the init containers.
 containerStatuses: The observed state of the containers.
 qosClass: How sure the pod may be of what it asks for; found from the resources of its containers.
 ephemeralContainerStatuses: The observed state of the ephemeral containers.
 resize: How far a change of resources has come; conditions tell it now.
 resourceClaimStatuses: The claims that were made for the pod.
 allocatedResources: The resources allocated to the pod.
 resources: What the pod as a whole is given now.
PodCondition: A condition of a pod.
 type: The type of the condition, such as Ready.
 status: True, False or Unknown.
 observedGeneration: Of which generation of the pod this was said.
 lastProbeTime: When it was last looked at.
 lastTransitionTime: When the status last changed.
 reason: The reason in one machine-readable word.
 message: A human-readable explanation.
PodIP: An address of a pod.
 ip: The address.
HostIP: An address of the node of a pod.
 ip: The address.
PodSecurityContext: The user, group and privileges with which the containers of a pod run.
 seLinuxOptions: The SELinux label of the containers.
 windowsOptions: What only matters on Windows.
 runAsUser: The number of the user that containers run as.
 runAsGroup: The number of the group that containers run as.
 runAsNonRoot: Whether containers that would run as root are refused.
 supplementalGroups: Further groups of the first process of each container.
 supplementalGroupsPolicy: Whether groups of the image are added to those given here.
 fsGroup: A group that volumes are made accessible to, and that containers are in.
 fsGroupChangePolicy: Whether the files of a volume are changed for fsGroup always, or only if its root does not fit.
 sysctls: Settings of the kernel for this pod.
 seccompProfile: Which system calls containers may use.
 appArmorProfile: The AppArmor profile of the containers.
 seLinuxChangePolicy: How volumes get the SELinux label of the pod.
Sysctl: A setting of the kernel.
 name: Its name.
 value: Its value.
Affinity: Near what a pod should run, and near what it should not.
 nodeAffinity: Which nodes suit the pod.
 podAffinity: Which other pods it should be near.
 podAntiAffinity: Which other pods it should be away from.
NodeAffinity: Which nodes suit a pod.
 requiredDuringSchedulingIgnoredDuringExecution: What a node must be like.
 preferredDuringSchedulingIgnoredDuringExecution: What a node should be like; the node with the most weight wins.
PodAffinity: Which other pods a pod should be near.
 requiredDuringSchedulingIgnoredDuringExecution: What must be fulfilled.
 preferredDuringSchedulingIgnoredDuringExecution: What is fulfilled if possible.
PodAntiAffinity like PodAffinity: Which other pods a pod should be away from.
PodAffinityTerm: Some pods, and how near is near.
 labelSelector: The labels of those pods.
 namespaces: The namespaces in which they are looked for.
 namespaceSelector: The labels of the namespaces in which they are looked for.
 topologyKey: The label whose value nodes that are near each other share.
 matchLabelKeys: Labels whose values must be those of the new pod.
 mismatchLabelKeys: Labels whose values must not be those of the new pod.
WeightedPodAffinityTerm: Some pods, and how much it matters to be near them.
 weight: How much, from 1 to 100.
 podAffinityTerm: The pods.
PreferredSchedulingTerm: Some nodes, and how much they are liked.
 weight: How much, from 1 to 100.
 preference: The nodes.
NodeSelector: Chooses nodes: one of its terms must hold.
 nodeSelectorTerms: The terms.
NodeSelectorTerm: Conditions on a node that must all hold.
 matchExpressions: Conditions on its labels.
 matchFields: Conditions on its fields.
NodeSelectorRequirement: One condition on a node.
 key: The name of the label or field.
 operator: How it is compared.
 values: What it is compared with.
Toleration: Taints that do not keep a pod away.
 key: The key of the taint; empty with Exists for all taints.
 operator: How the value is compared; Exists takes any.
 value: The value of the taint.
 effect: The effect of the taint; empty for all effects.
 tolerationSeconds: For how long a NoExecute taint is endured.
TopologySpreadConstraint: How evenly pods are spread.
 maxSkew: By how many pods two places may differ.
 topologyKey: The label whose values are the places.
 whenUnsatisfiable: Whether a pod that does not fit waits, or is placed all the same.
 labelSelector: Which pods are counted.
 minDomains: How many places there must be at least.
 nodeAffinityPolicy: Whether nodes that do not suit the pod are left out of the count.
 nodeTaintsPolicy: Whether nodes whose taints keep the pod away are left out of the count.
 matchLabelKeys: Labels whose values must be those of the new pod.
HostAlias: A line of /etc/hosts.
 ip: The address.
 hostnames: The names of that address.
PodDNSConfig: How names are looked up.
 nameservers: Addresses of servers to ask.
 searches: Domains that are tried behind short names.
 options: Options of the resolver.
PodDNSConfigOption: An option of the resolver.
 name: Its name.
 value: Its value, if it has one.
PodReadinessGate: A condition that must hold for a pod to be ready.
 conditionType: The type of the condition.
PodSchedulingGate: Something that holds a pod back from finding a node.
 name: Who holds it back.
PodOS: The operating system of a pod.
 name: linux or windows.
PodResourceClaim: A claim of devices that a pod uses.
 name: What containers of the pod call it.
 resourceClaimName: The claim, if there is one already.
 resourceClaimTemplateName: What a claim is made from, if each pod has its own.
`;

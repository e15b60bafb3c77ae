//! Slurm's lists of hosts.

/// Returns the first host of a list such as `node[003-005,9],login1`: `node003`.
///
/// Brackets contain numbers and ranges, possibly several times in a name. `None` if the list is
/// empty or a bracket is not closed.
pub(super) fn first_host(list: &str) -> Option<String> {
    let mut host = String::new();
    let mut remaining = list.trim();
    loop {
        let end = remaining.find(['[', ',']).unwrap_or(remaining.len());
        host.push_str(&remaining[..end]);
        let Some(bracket) = remaining[end..].strip_prefix('[') else {
            break;
        };
        let (numbers, after) = bracket.split_once(']')?;
        host.push_str(numbers.split(['-', ',']).next()?);
        remaining = after;
    }
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_host_keeps_leading_zeros() {
        for (list, host) in [
            ("login1", "login1"),
            ("a,b", "a"),
            ("node[003-005,9],login1", "node003"),
            ("node[7]", "node7"),
            ("rack[1-2]-node[30,40]", "rack1-node30"),
            ("n[1-2].cluster.example,other", "n1.cluster.example"),
        ] {
            assert_eq!(first_host(list).as_deref(), Some(host), "{list}");
        }
    }

    #[test]
    fn list_without_a_host_has_none() {
        for list in ["", " ", "node[1", ","] {
            assert_eq!(first_host(list), None, "{list:?}");
        }
    }
}

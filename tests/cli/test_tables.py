"""Tables as people have them: what parts the fields, whether the first line has names, how numbers are written, and rows that
are wider than the first line. The oracle is Python's csv with fractions."""

import csv
import gzip
import io
import os
from fractions import Fraction

import numpy as np
import pytest


def a_seed():
    return int(os.environ.get("TALLY_SEED", 0)) or int.from_bytes(os.urandom(4), "little")


def shown(total, places):
    """A sum of decimals with so many digits behind the point."""
    scaled = abs(total) * 10**places
    assert scaled.denominator == 1
    digits = str(scaled.numerator).rjust(places + 1, "0")
    return ("-" if total < 0 else "") + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


# ---- Whole tables and what is right: the table, the options, the answer; an answer that is a list is words of an error

R_TABLE = '"x" "v"\n"1" 2 5\n"2" 3 6\n'
WIDER = "{}: the line has {} fields, but the first line has {}; a field with the delimiter in it must stand in quotes"
CASES = [
    # Rows wider than the first line, and R's, whose first line has no name for those of the rows.
    ("id,amount\n1,1,234.50\n2,3.00\n", "--decimal -c amount", [WIDER.format(2, 3, 2)]),
    ("id,amount\n1,1,234.50\n2,3,456.00\n", "-c amount", ["numbers such as 1,234.50 must stand in quotes"]),
    ("id,amount\n1,1,234.50\n2,3,456.00\n", "-c 2", ["numbers such as 1,234.50 must stand in quotes"]),
    ("178,13,class_0,class_1,class_2\n" + "1,2,3,4,5,6,7,8,9,10,11,12,13,0\n" * 3, "-c 1", [WIDER.format(2, 14, 5)]),
    ("1,2\n3,4,5\n", "-c 1", [WIDER.format(2, 3, 2)]),
    ("a,b\n1,2\n3,4,5\n6,7\n", "-c a", [WIDER.format(3, 3, 2)]),
    ('a,b\n1,2\n3,"4\n4",5\n', "-c a", [WIDER.format(3, 3, 2)]),
    ("a,b\n1,2,,\n3,4,\n5,6\n", "-c b", "12"),
    ("a,b\n1,2,\n3,4,\n", "-c b", "6"),
    ("a,b\n1,2, , \r\n3,4,\r\n", "-c b", "6"),
    ('a,b\n"1","2",""\n"3","4",\n', "-c b", "6"),
    ("a,b,c\n1,2\n3\n4,5,6,,\n", "-c a", "8"),
    ("a,b,c\n1,2\n3\n4,5\n", "-c a", "8"), ("a,b,c\n1,2\n3\n4,5\n", "-c b", ["3: the line has 1 field, and no column b"]),
    (R_TABLE, "-c v", "11"), (R_TABLE, "-c x", "5"), (R_TABLE, "-c 3", "11"), (R_TABLE, "-c v --by x", "2\t5\n3\t6"),
    (R_TABLE, "-c v --by 1", "1\t5\n2\t6"), (R_TABLE, "-c 3 --by 2", "2\t5\n3\t6"), (R_TABLE, "-c x,v", "x\t5\nv\t11"),
    (R_TABLE.replace(" ", ","), "-c v", "11"), (R_TABLE.replace(" ", "\t"), "-c v", "11"), (R_TABLE.replace(" ", ";"), "-c v", "11"),
    (R_TABLE.replace(" ", "|"), "-c v -F |", "11"), (R_TABLE.replace('"', ""), "-c v", "11"), (R_TABLE.replace("\n", "\r\n"), "-c v", "11"),
    (R_TABLE.replace(" ", ",") + '"3",4\n', "-c v", [WIDER.format(2, 3, 2)]),
    (R_TABLE.replace(" ", ",") + '"3",4,NA\n', "-c v --skip-na", "11"), (R_TABLE.replace(" ", ",") + '"3",4,\n', "-c v --skip-na", "11"),
    ('"2019" "2020"\n"Rome" 1 2\n"Oslo" 3 4\n', "-c 2020", "6"), ("2019 2020\nRome 1 2\nOslo 3 4\n", "-c 3", "6"),
    (R_TABLE.replace(" ", ","), "-c 2 --no-header", ["1: 'v' is no f64 number"]), ("1,x\n1,2,5\n", "-c 1 --no-header", [WIDER.format(2, 3, 2)]),
    # The first line has names where it has words above numbers.
    ("city,2019,2020\nRome,1,2\nOslo,3,4\n", "-c 3", "6"), ("city,2019,2020\nRome,1,2\nOslo,3,4\n", "-c 2020", "6"),
    ("city,2019,2020\nRome,1,2\nOslo,3,4\n", "-c 3 --by 1", "Rome\t2\nOslo\t4"), ("id,2019,2020\n7,1,2\n8,3,4\n", "-c 2020", "6"),
    ("id,2019,2020\n7,1,2\n8,3,4\n", "-c 3", "6"), ("2020,2019\n1,2\n", "-c 2019", "2"), ("id,2,1\n7,5,6\n", "-c 1", "6"),
    ("id,2,1\n7,5,6\n", "-c 1 --header", "6"), ("2019,2020\n1,2\n", "-c 2", ["may have names or numbers"]), ("2019,2020\n1,2\n", "-c 2 --no-header", "2022"), ("1,2\n3,4\n", "-c 2", "6"),
    ("1,2\n3,4\n", "-c 2 --header", "4"), ("a,b\n1,2\n", "-c 2", "2"), ("a,b\n1,2\n", "-c 2 --no-header", ["1: 'b' is no f64 number"]),
    ("price\n1\n2\n", "-c 1", "3"), ("a,1\nb,2\n", "-c 2", "3"), ("5.1,3.5,Iris\n4.9,3.0,Iris\n", "-c 1", "10"),
    ("?,3,x\n4,5,y\n", "-c 2", "8"), ("NA,3\n4,5\n", "-c 2", "8"), ("NA,3\n4,5\n", "-c 1 --skip-na", "4"), ("1x,3\n4,5\n", "-c 2", "8"),
    (",0,1\n0,5,6\n1,7,8\n", "-c 2", "12"), (",0,1\n0,5,6\n1,7,8\n", "-c 3", "14"), (",0,1\na,5,6\nb,7,8\n", "-c 3", "14"), (",x,v\n0,5,6\n1,7,8\n", "-c v", "14"), (",x,v\n0,5,6\n1,7,8\n", "-c 3", "14"),
    ("Rome,2019\nOslo,2020\n", "-c 2", "4039"), ("Rome,5,2019\nOslo,6,2020\n", "-c 2", "11"),
    ("city,2019\nRome,5\nOslo,7\n", "-c 2", ["the first line, 'city,2019', may have names or numbers; say --header or --no-header"]),
    ("city,2019\nRome,5\nOslo,7\n", "-c 2 --header", "12"), ("city,2019\nRome,5\nOslo,7\n", "-c 2 --no-header", "2031"),
    ("city,2019\nRome,5\nOslo,7\n", "-c 2019", "12"), ("city,2019,1850\nRome,5,2\nOslo,7,3\n", "-c 2", ["may have names or numbers"]),
    ("n,7,3,9\n1,2,3,4\n", "-c 2", ["may have names or numbers"]), ("city,2020-01-01,2020-02-01\nRome,1,2\n", "-c 3", "2"),
    ("1,2020\n3,4\n", "-c 2020", "4"), ("b\n", "-c 1", ["1: 'b' is no f64 number; where the first line has names, add --header"]),
    ("x y\n1 2\n3 4\n", "-c 2 --by 1", "1\t2\n3\t4"), ('"1","2"\n3,4\n5,6\n', "-c 2", "10"), ("x\n1\n\n2\n", "-c 1", "3"),
    # A first line that only begins as numbers do is neither without a word; dates are names.
    *((f"{first}\n6\n7\n", "-c 1", [f"the first line, '{first}', may have names or numbers; say --header or --no-header"])
      for first in ("5%", "1O5", "€5", "<0.5", "(5)", "\u22125", "~ 5", "£5", "0-10", "*5", "[5]")),
    ('"1 2"\n6\n7\n', "-c 1", ["may have names or numbers"]), ("Rome,5%\nOslo,6\n", "-c 2", ["may have names or numbers"]),
    ("1O5,2019\n106,2\n", "-c 2", ["may have names or numbers"]), ("5%\n6\n7\n", "-c 1 --header", "13"), ("5%,1\n6,2\n", "-c 2", "3"),
    ("5%\n6\n7\n", "-c 1 --no-header", ["1: '5%' is no f64 number"]), ("2020-01-01\n6\n7\n", "-c 1", "13"), ("x,5%\n6,2\n", "-c 2", "2"),
    ("_1,_2\n6,2\n", "-c 2", "2"), ("k,2020-01,2020-02\na,6,2\n", "-c 2", "6"), ("ND,5\n6,7\n", "-c 2", ["may have names or numbers"]), ("ND,.5,.7\n6,7,8\n", "-c 2", ["may have names or numbers"]),
    ("id,.25,.5,.75\n6,7,8,9\n", "-c 2", "7"), ("ND,866,2702\n6,7,8\n", "-c 2", ["may have names or numbers"]),
    ("150,4,setosa,virginica,versicolor\n5,3,1,2,0\n", "-c 2", "3"), ("ERR,ERR,5\n1,2,3\n", "-c 3", ["may have names or numbers"]), ("id,1,2,3\n6,7,8,9\n", "-c 2", "8"), ("id,2019\n6,7\n", "-c 2", "7"),
    # Comments.
    ("1,2\n#skip,9\n3,4\n", "-c 2", "6"), ("# written by x\na,b\n1,2\n3,4\n", "-c b", "6"), ("v,k\n1,a\n#commented-out,b\n#7,9\n3,4\n", "-c v", "4"),
    ("#\n\n  # 9,9\na,b\n #,1\n1,2\n", "-c b", "2"), ('a,b\n"#7",9\n1,2\n', "-c b", "11"), ('a,b\n"x\n#9,9",1\n1,2\n', "-c b", "3"),
    ("a#b#\n#9#1\n1#2\n", "-c b -F #", "11"), ("# x y\n1 2\n3 4\n", "-c y", "6"), ("# x,y\n1,2\n3,4\n", "-c y --by x", "1\t2\n3\t4"),
    ("# x y\n1 2\n3 4\n", "-c 2", "6"), ("# x y\n1 2\n3 4\n", "-c z", ["has no column z; its columns are x y"]), ("# x y\n1 2\n", "-c 2 --header", "2"),
    ("# a comment of five words\nx y\n1 2\n", "-c y", "2"), ("1,2\r#3,9\r3,4\r", "-c 2", "6"), ("a\tb\n#1\t2\n3\t4\n", "-c b", "4"),
    ("a,b\n\t#1,2\n3,4\n", "-c b", "4"), ("a\tb\n\t#\n5\t4\n", "-c a --skip-na", "5"),
    # Runs of blanks.
    ("id value\n1 2.5\n2 3.5\n", "-c value", "6"), ("PID  RSS COMMAND\n  1  100 init\n 22   50 cron\n", "-c RSS", "150"),
    ("PID  RSS COMMAND\n  1  100 init -x 7\n 22   50 cron\n", "-c RSS", "150"), ("PID  RSS COMMAND\n  1  100 init -x\n 22   50 cron y\n", "-c RSS", "150"),
    ("PID  RSS COMMAND\n  1  100 init -x 7\n 22   50 cron\n", "-c RSS --by COMMAND", "init -x 7\t100\ncron\t50"),
    ("city v k\nRome 4 a\nArea 51 6 b\n", "-c v", ["3: the line has 4 fields, but the first line has 3; a field with blanks in it"]),
    ("city     v k\nRome     4 a\nArea 51  6 b\n", "-c v", ["3: the line has 4 fields, but the first line has 3"]),
    ('city v k\nRome 4 a\n"Area 51" 6 b\n', "-c v --by city", "Rome\t4\nArea 51\t6"), ("  x  v\n0  1  2\n1  3  4\n", "-c v", "6"),
    ("Filesystem  1K-blocks  Used Use% Mounted on\n/dev/sda1        1000   300  30% /\ntmpfs             500    20   4% /run\n", "-c Used", "320"),
    ("12:00 AM  CPU  %user  %idle\n12:10 AM  all   1.50  98.50\nAverage:  all   1.50  98.50\n", "-c %user", ["3: the line has 4 fields, but the first line has 5"]),
    ("a b\n1 2\n3\n", "-c a", ["3: the line has 1 field, but the first line has 2"]), ("1 2\n3 4 5\n", "-c 1", ["2: the line has 3 fields"]),
    ("a\tb c\n1\t2 3\n4\t5 6\n", "-c a -F blank", "5"), ("  1   2 \r\n 3\t4\r\n", "-c 2 -F blank", "6"), ("net price\n1\n2\n", "-c 1", "3"),
    ("net price\n1\n2\n", "-c|net price", "3"), ("a b\n1 5'10\"\n", "-c a", "1"), ('x "long name"\n1 2\n', "-c|long name", "2"),
    ("              total        used\nMem:            100          30\nSwap:            50\n", "-c total", "150"),
    ("a      b    c\n1  2 3\n12345678   3\n", "-c a", ["3: the line has 2 fields, but the first line has 3"]), ("a      b    c\n1  2 3\n123456     3\n", "-c a", "123457"),
    ("a      b    c\n1  2 3\n5    34567890\n", "-c b", ["3: the line has 2 fields, but the first line has 3"]),
    ("ääää  b  c\n1 2 3\nx        3\n", "-c b", ["3: the line has 2 fields"]), ("     b  c\nä 2 3\nääää 5\n", "-c b", "7"),
    *((f"id   a   b  note\n1    2   3  ok\n2        4  {words}\n", f"-c {column}", want) for words in ("not ok", "not ok at all")
      for column, want in (("id", "3"), ("b", ["3: no field of column b stands"]), ("a", ["3: no field of column a stands below its name; a field with blanks in it must stand in quotes"]))),
    ("id   a   b  note\n1    2   3  ok\n2    3   4  not ok\n", "-c a", "5"), ("a  b  c\n1.234567 2.345678 3.5\n", "-c b", "2.345678"),
    ("              total        used\nMem:            100          30\nSwap:            50\n", "-c total --by 1", "Mem:\t100\nSwap:\t50"),
    # The delimiter.
    ("Col1;Col3\n1;1,01\n2;2,02\n", "-c Col3 --decimal-mark , --decimal", "3.03"), ("1;1,01\n2;2,02\n", "-c 2 --decimal-mark , --decimal", "3.03"),
    ("1;1,01\n2;2,02\n", "-c 2", ["1: '1,01' in column 2 is no f64 number; --decimal-mark , reads such numbers"]), ("a|b\n1|2\n", "-c b", "2"),
    ("price, net;qty\n1,5;2\n2,5;3\n", "-c qty", "5"), ('"a;b",c\n1,2\n', "-c c", "2"), ("a\tb, c\n1\t2\n", "-c|b, c", "2"),
    ("sep=;\na;b\n1;2\n", "-c b", "2"), ("sep=,\r\na,b\r\n1,2\r\n3,x\r\n", "-c b", ["4: 'x' in column b"]), ("1 000,5 2\n", "-c 2 -F blank", [""]),
    ('"1,5","2,5"\n"3,5","4,0"\n', "-c 2 --decimal-mark ,", "6.5"), ("1,5 2,5\n3,5 4,0\n", "-c 2 --decimal-mark ,", "6.5"),
    ("v\n1,5\n2,5\n", "-c v --decimal-mark ,", "4"), ("1,5\n2,5\n", "-c 1 --decimal-mark ,", "4"), ("a,b\n1,2\n", "-c b --decimal-mark ,", "2"),
    ("18.0   8  307.0\t\"x y\"\n15.0   8  350.0\t\"b c\"\n", "-c 1", ["-F blank has fields between runs of blanks"]),
    ("18.0   8  307.0\t\"x y\"\n15.0   8  350.0\t\"b c\"\n", "-c 1 -F blank --by 4", "x y\t18\nb c\t15"),
    ("##x=<a,b>\n#CHROM\tPOS\tQUAL\nchr1\t100\t30\nchr1\t200\t.\n", "-c QUAL --na .", "30"), ("#a\tb\nx\t1\ny\t2\n", "-c b --by a", "x\t1\ny\t2"),
    ("#a b\nx b\n1 2\n", "-c b", "2"),
    ("a|3,5\nb|4,5\n", "-c 2", ["1: '3,5' in column 2 is no f64 number; --decimal-mark , reads such numbers"]),
    ("1,5|2,5\n3,5|4,0\n", "-c 2", ["1: '2,5' in column 2"]), ("1,5|2,5\n3,5|4,0\n", "-c|2|--decimal-mark|,", "6.5"),
    ("id|a,b|v\n1|x,y|3\n2|z,w|4\n", "-c v", "7"), ("id,a|b,v\n1,x|y,3\n2,z|w,4\n", "-c v", "7"), ("id,a;b,v\n1,x;y,3\n2,z;w,4\n", "-c v", "7"),
    ('id,"a;b",v\n1,"x;y",3\n2,"x;y",4\n', "-c v", "7"), ("a\x015\nb\x016\n", "-c|2|-F|\x01", "11"),
    *((text, f"-c {column}", ["fields may stand between commas, or numbers such as 1,5 between blanks; say -F , or -F blank"])
      for text in ("10:00 21,5 40,1\n10:01 21,6 40,2\n", "sensor1 21,5\nsensor2 21,65\n", "1,234.50 Rome\n5,000 Oslo\n") for column in (1, 2)),
    ("sensor1 21,5\nsensor2 21,65\n", "-c 2 -F blank --decimal-mark ,", "43.15"), ("sensor1 21,5\nsensor2 21,65\n", "-c 2 -F ,", "70"),
    ("2020-01-01 10:00,5\n2020-01-01 11:00,6\n", "-c 2", "11"), ("1, 2\n3, 4\n", "-c 2", "6"), ("1 ,2\n3 ,4\n", "-c 2", "6"), ("New York,5\nOslo,6\n", "-c 2", "11"),
    ("Area 51,5\nOslo,6\n", "-c 2", "11"), ("a b,c\n1 2,3\n", "-c c", "3"),
    # Labels of two words that end in a number: the first word is no row's name.
    *((table, f"-c {column}", ["words with a blank between them must stand in quotes"])
      for table in ("city     x\nArea 51  5\nArea 52  6\n", "city    x\nArea 51 5\nArea 52 6\n", "district x\nArea 51  5\nArea 52  6\n",
                    "    city  x   y\n Area 51  5  10\n Area 52  6  12\n", "city      x   y\nArea 51  12   7\nArea 52   6  17\n") for column in ("x", "1")),
    ("x    v\n1  2    5\n2  3    6\n", "-c v", "11"), ("x v\nr1 2 5\nr2 3 6\n", "-c v", "11"), ("x v\nr1  2  5\nr2 13 16\n", "-c v", "21"), ("x   y\nr1 1 2\nr2 3 4\n", "-c x", "4"),
    ("   x   v\nA 51   5\nA 52   6\n", "-c v", "11"),
    # Blanks between thousands, of which the columns have more.
    *((table, f"-c {column}", ["0' may be one number or two fields; -F blank takes it for two; of columns with two blanks or more between them, "
                               "sed 's/   */\\t/g' FILE | tally ... --thousands ' ' reads it"])
      for table in ("Country Name   Pop   Area\nItaly   59 000   301\nSpain   47 000   505\n", "Name   Pop   Area\nItaly   59 000   301\nSpain   47 000   505\n",
                    "Name      Pop   Area\nItaly  59 000    301\nSpain  47 000    505\n", "Country Name      Pop   Area\nItaly          59 000    301\nSan Marino         33     61\n",
                    "Country Name      Pop   Area\nSan Marino         33     61\nItaly         159 000    301\n", "Name       Pop   Area   Note\nItaly   59 000   301\nSpain   47 000   505\n",
                    "Name        Pop  Area\nItaly  -159 000   301\nSpain   -47 000   505\n") for column in ("Pop", "2")),
    ("Name             Pop    Area    Note   N2\nItaly   1 059 000     301\nSpain   2 047 000     505\n", "-c Pop", ["'2 047' may be one number"]),
    ("Country Name   Pop   Area\nItaly   59 000   301\n", "-c|Area|-F|blank", "301"), ("Country Name\tPop\tArea\nItaly\t59 000\t301\n", "-c|Pop|--thousands| ", "59000"),
    ("   x   y   z\n 100 200  30\n 120 210  30\n", "-c y", "410"), ("x y z\n 100 200  30\n 120 210  30\n", "-c y", "410"), ("   x   y\n1 99  20\n2 200  30\n", "-c y", "50"),
    ("  r   b   cs us sy id wa st\n  0   0   20  0  0 100  0  0\n  0   0   20  1  0 99  0  0\n", "-c id", "199"), ("ST CTY  NAME         POP\n36 061  New         1585\n36 047  Old         2555\n", "-c POP", "4140"),
    ("name  h w    z\nAl    9 100  5\nBo    9 101  5\n", "-c w", "201"), ("PID  RSS COMMAND\n  1  100 init 5 500\n 22   50 cron 7 600\n", "-c RSS", "150"),
    # Tables that are drawn for people.
    *((table, f"{column}{more}", [f"standard input:{line}: this line is drawn for people; psql --csv, mysql -B and duckdb -csv write plain tables, "
                                  "and grep '|' FILE | tally ... leaves lines such as ---+--- out"])
      for line, table in ((2, " a | b\n---+---\n 1 | 2\n(1 row)\n"), (1, "+---+---+\n| a | b |\n+---+---+\n| 1 | 2 |\n+---+---+\n"), (3, "A title\n a | b \n---+---\n 1 | 2 \n"),
                          (2, "| a | b |\n|---|:--|\n| 1 | 2 |\n"), (2, " a \u2502 b \n\u2500\u2500\u2500\u253c\u2500\u2500\u2500\n 1 \u2502 2 \n"), (2, "| a | b |\n|---+---|\n| 1 | 2 |\n"),
                          (1, "+===+===+\n| a | b |\n+===+===+\n| 1 | 2 |\n"), (4, "\n\n a | b\n---+---\n 1 | 2\n"))
      for column in ("-c b", "-c a", "-c 2") for more in ("", " -F blank", " --skip-na")),
    (" a | b\n 1 | 2\n 3 | 4\n", "-c|b", "6"), ("| a | b |\n| 1 | 2 |\n| NULL | 4 |\n", "-c|a|--skip-na", "1"), ("a|b\n-|-\n1|2\n", "-c|b|--skip-na", "2"), ("a|b\n---|---\n1|2\n", "-c|b|--na|---", "2"),
    ("a|b\n--|--\n1|2\n", "-c|b|--na|--", "2"), ('id,body,v\n1,"a | b\n---+---\n1 | 2",5\n2,x,6\n', "-c v", "11"), ("a   b\n---\n1   2\n", "-c b", ["2: the line has 1 field"]),
    ("+ 1\n- 2\n", "-c 2", "3"), ("s v\n+-+ 1\n--+ 2\n", "-c v", "3"), ("|---|1\n|---|2\n", "-c|3|--no-header", "3"), ("# ---+---\na,b\n1,2\n", "-c b", "2"),
    # One column of R's, with quotes.
    ('"total"\n"1" 345\n"2" 200\n', "-c total", "545"), ('"total"\n"1"\t345\n"2"\t200\n', "-c total", "545"), ('"total"\n"a";345\n"b";200\n', "-c total", "545"),
    ('"total"\n"a",345\n"b",200\n', "-c 2", "545"), ('"a total"\n345\n200\n', "-c|a total", "545"),
    # Rows of one field more, which may be parted numbers as well.
    ("QTY NAME\n5   10 bolts\n6   7 nuts\n", "-c QTY", ["words with a blank between them must stand in quotes"]),
    *((f"id a b name\n{rows}", f"-c {column}", ["words with a blank between them must stand in quotes"])
      for rows in ("1 10 20 steel bolts\n2 7 8 brass nuts\n", "x 10 20 steel bolts\ny 7 8 brass nuts\n") for column in ("a", "id")),
    ("id city v\n1 New York 5\n2 Los Angeles 6\n", "-c v --by city", ["words with a blank between them must stand in quotes"]),
    ('id a b name\n"1" 1 10 20 bolts\n"2" 2 7 8 nuts\n', "-c a", "17"), ("price\n1,99\n", "-c price", ["numbers such as 1,5 must stand in quotes"]), ("price\n1,50\n2,99\n3,10\n", "-c price", ["numbers such as 1,5"]),
    ("v\n1 234\n5 678\n", "-c v", ["--thousands ' ' reads such numbers"]), ("    v\n1 234\n2 678\n", "-c v", ["numbers such as 1 234"]),
    ("     v\n0  234\n1  678\n", "-c v", "912"), ("v,w\n7,5,2\n9,5,3\n", "-c w", ["numbers such as 1,5 must stand in quotes"]),
    ("v,w\n1,5,2\n2,5,3\n", "-c w", ["numbers such as 1,5 must stand in quotes"]),
    ("id,price\n1,1,50\n2,2,99\n3,4,10\n", "-c price", ["numbers such as 1,5 must stand in quotes"]), ("v,w\n1,5.5,2\n2,6,3.5\n", "-c w", "5.5"),
    ("v,w\n1,5.5,2.5\n2,6.25,3.5\n", "-c w", "6"), ('"v","w"\n"1",5,2\n"2",5,3\n', "-c w", "5"), ("v\tw\n1\t5\t2\n2\t5\t3\n", "-c w", "5"), ("name,v\nRome,1,5\nOslo,2,5\n", "-c v", ["numbers such as 1,5"]),
    ("Filesystem  1K-blocks  Used Use% Mounted on\n/dev/sda1        1000   300  30% /\ntmpfs             500    20   4% /run\n", "-c 3", "320"),
    # How numbers are written.
    ('v,k\n"0,126",a\n', "-c v --thousands ,", [" is no f64 number"]), ('v,k\n"0,126",a\n', "-c v", ["--decimal-mark , reads such numbers"]),
    ('state,pop\nAL,"4,903,185"\nAK,"731,545"\n', "-c pop --thousands ,", "5634730"), ('v,k\n"1,23",a\n', "-c v --thousands ,", [" is no f64 number"]),
    ('v,k\n"1,234",a\n', "-c v", ["'1,234' in column v is no f64 number; --decimal-mark , or --thousands , tells how it is meant"]),
    ("v;k\n1.234,50;a\n-2.000.000,25;b\n", "-c v --decimal-mark , --thousands . --decimal", "-1998765.75"),
    ("v;k\n1.5;a\n", "-c v --decimal-mark ,", ["is no f64 number"]), ("v;k\n1'234.5;a\n", "-c v --thousands '", "1234.5"),
    ("v;k\n1 234,5;a\n", "-c|v|--decimal-mark|,|--thousands| ", "1234.5"), ("v;k\n1\u202f234;a\n", "-c|v|--thousands|\u202f", "1234"),
    ("v\n1.0D+05\n2.5d-01\n", "-c v", "100000.25"), ("v\n1.0D+05\n2.5d-01\n", "-c v --decimal", "100000.25"), ('v\n" 5 "\n"6"\n', "-c v", "11"),
    ('v\n"\n5"\n', "-c v", ["is no f64 number"]), ('v\n"5\n"\n', "-c v", ["is no f64 number"]), ("v\n\v5\n", "-c v", ["is no f64 number"]),
    ("d,v\n2020-01-01,1\n", "-c d", ["'2020-01-01' in column d is no f64 number; that is a date or a time, and only numbers are reduced"]),
    ("d,v\n31.12.2020,1\n", "-c d", ["that is a date or a time"]), ("d,v\n12:30,1\n", "-c d", ["that is a date or a time"]),
    # Names.
    ("v,v\n1,2\n", "-c v", ["has two columns v, 1 and 2; give the number of one of them"]), ("v,v\n1,2\n", "-c 2", "2"),
    ("k,v,k\n1,2,3\n", "-c v --by k", ["has two columns k, 1 and 3"]), ("k,v,k\n1,2,3\n", "-c v", "2"), ("v v\n1 2 3\n", "-c v", ["has two columns v, 2 and 3"]),
    ('"price, net",qty\n1,5\n2,3\n', "-c|price, net", "3"), ('"price, net",qty\n1,5\n2,3\n', '-c|"price, net",qty', "price, net\t3\nqty\t8"),
    ('"price, net",qty\n1,5\n2,3\n', "-c|price\\, net,qty", "price, net\t3\nqty\t8"), ('"price, net",qty\n1,5\n2,3\n', "-c|qty|--by|price, net", "1\t5\n2\t3"),
    ('"price, net",qty\n1,5\n', "-c|prize net", ["has no column prize net; did you mean price, net?"]), ('"a,b",a,b\n1,2,3\n', "-c a,b", "1"),
    ('"\\\\HOST\\CPU",b\n5,1\n', "-c|\\\\HOST\\CPU", "5"), ('"a ",b\n5,1\n', "-c|a ", "5"),
    ('"a,b",a,b\n1,2,3\n', "-c|a\\,b,b", "a,b\t1\nb\t3"), ("a,b\n1,2\n", "-c|a, b", "a\t1\nb\t2"), ('a,"b""c"\n1,2\n', '-c|b"c', "2"),
]


def arguments(text):
    return text.split("|") if "|" in text and "-F |" not in text else text.split()


@pytest.mark.parametrize("table, args, want", CASES, ids=range(len(CASES)))
def test_cases(tally, table, args, want):
    """As it stands, with a byte order mark, with other line ends, and packed."""
    args = ["sum", *arguments(args)]
    forms = [table.encode(), b"\xef\xbb\xbf" + table.encode(), gzip.compress(table.encode())]
    if "\r" not in table:
        forms.append(table.replace("\n", "\r\n").encode())
    for data in forms:
        if isinstance(want, list):
            assert want[0] in tally.fails(*args, stdin=data), data
        else:
            assert tally(*args, stdin=data) == want, data


def test_several_files(tally, tmp_path):
    """Each has a form of its own; columns by name stand where each header has them."""
    tables = {"a.csv": "k,v\na,1\nb,2\n", "b.csv": "v;x;k\n3;9;a\n", "c.txt": "  v k\n  4 b\n", "r.txt": R_TABLE.replace("x", "k")}
    for name, text in tables.items():
        (tmp_path / name).write_text(text)
    files = [tmp_path / name for name in tables]
    assert tally("sum", "-c", "v", *files) == "21"
    assert tally("sum", "-c", "v", "--by", "k", *files) == "a\t4\nb\t6\n2\t5\n3\t6"
    (tmp_path / "d.csv").write_text("v,w\n1,2,3\n4,5\n")
    assert tally.fails("sum", "-c", "v", *files, tmp_path / "d.csv") == f"{tmp_path / 'd.csv'}:2: " + WIDER.format(2, 3, 2)[3:]
    (tmp_path / "e.csv").write_text('"v,k",k\n1,2\n')
    assert tally("sum", "-c", "v,k", tmp_path / "e.csv", tmp_path / "e.csv") == "2"
    assert "has no column v,k" in tally.fails("sum", "-c", "v,k", tmp_path / "e.csv", tmp_path / "a.csv")


@pytest.mark.parametrize("args, words", [
    (("-c", "v", "--no-header"), "--no-header: columns are given by number, not as 'v'"),
    (("-c", "1", "--no-header", "--header"), "--header and --no-header exclude each other"),
    (("--no-header",), "--no-header goes with a table's column"),
    (("-c", "1", "--decimal-mark", ";"), "--decimal-mark takes . or ,; ';' is neither"),
    (("-c", "1", "--thousands", ""), "--thousands takes one character"), (("-c", "1", "--thousands", ",,"), "--thousands takes one character"),
    (("-c", "1", "--thousands", "5"), "--thousands takes one character"),
    (("-c", "1", "--thousands", "."), "--thousands and the decimal mark are both '.'"),
    (("-c", "1", "--thousands", ",", "--decimal-mark", ","), "--thousands and the decimal mark are both ','"),
    (("--thousands", " "), "--thousands ' ' goes with a table's column"), (("--raw", "--dtype", "f8", "--thousands", ","), "--thousands goes with text"),
])
def test_options_that_do_not_go_together(tally, args, words):
    assert tally.fails("sum", *args, status=2).startswith(words)


def test_text_has_spellings_too(tally):
    assert tally("sum", "--decimal-mark", ",", stdin=b"1,5 2,25\n-3,75\n1e3\n") == "1000"
    assert tally("sum", "--thousands", ",", stdin=b"1,234.5\n1,000,000\n") == "1001234.5"
    assert tally("sum", "--decimal", "--decimal-mark", ",", "--thousands", ".", stdin=b"1.234,50 0,10\n") == "1234.60"
    assert tally("sum", stdin=b"1.0D+05\n2.5d-01\n-1D0\n") == "99999.25"
    assert tally("sum", "--text", "--dtype", "f16", stdin=b"1.5D+1\n") == "15"
    assert "--decimal-mark , reads such numbers" in tally.fails("sum", stdin=b"1,5\n")
    assert "--thousands , reads such numbers" in tally.fails("sum", stdin=b"1,234.50\n")
    assert tally.fails("sum", stdin=b"price\n1\n") == (
        "standard input:1: 'price' is no f64 number; of a table with names in its first line, -c price takes a column")
    for word in (b"1D", b"D5", b"1D+", b"1D5D5", b"1.5DD2", b"0x1D+p"):
        assert "is no f64 number" in tally.fails("sum", stdin=word + b"\n")
    assert tally("sum", stdin=b"0xD\n") == "13"


# ---- Random tables


class Table:
    """Rows of random texts and decimals, and how they are written."""

    def __init__(self, rng):
        self.rng = rng
        self.delimiter = str(rng.choice([",", "\t", ";", "|", " "]))
        self.by_blanks = self.delimiter == " "
        self.mark = str(rng.choice([".", ","])) if self.delimiter != "," else "."
        self.thousands = str(rng.choice(["", "", {".": "'", ",": "."}[self.mark]]))
        self.is_r = bool(rng.integers(0, 4) == 0)
        self.quotes_all = self.is_r or bool(rng.integers(0, 2))
        self.end = str(rng.choice(["\n", "\r\n"]))
        self.columns = int(rng.integers(2, 9))
        self.key = int(rng.integers(0, self.columns))
        self.value = int(rng.choice([i for i in range(self.columns) if i != self.key]))
        self.names = [f"n{i}x" for i in range(self.columns)]
        self.rows = [self.row() for _ in range(int(rng.integers(1, 300)))]

    def number(self):
        digits, places = int(self.rng.integers(-10**9, 10**9)), int(self.rng.integers(0, 6))
        return Fraction(digits, 10**places), places

    def row(self):
        cells = []
        for i in range(self.columns):
            kind = self.rng.integers(0, 5)
            if i == self.key:
                cells.append(str(self.rng.choice(["Rome", "a b", 'say "x"', "#1", "k,l;m", "e"] if not self.by_blanks else ["Rome", "a b", "#1", "k,l;m"])))
            elif i == self.value and self.rng.integers(0, 8):
                cells.append(self.number())
            elif i == self.value:
                cells.append(str(self.rng.choice(["NA", "n/a", "#N/A", "NULL"])))
            else:
                cells.append(self.number() if kind else "text")
        return cells

    def text_of(self, cell):
        if isinstance(cell, str):
            return cell
        whole, _, behind = shown(*cell).partition(".")
        if self.thousands and self.rng.integers(0, 2):
            whole = f"{int(whole):,}".replace(",", self.thousands) if int(whole) or whole[0] != "-" else whole
        return whole + (self.mark + behind if behind else "")

    def text(self):
        out = io.StringIO()
        writer = csv.writer(out, delimiter=self.delimiter, lineterminator=self.end,
                            quoting=csv.QUOTE_NONNUMERIC if self.quotes_all else csv.QUOTE_MINIMAL)
        if self.rng.integers(0, 2):
            out.write(f"# a comment, with {self.delimiter} in it{self.end}")
        writer.writerow(self.names)
        for n, row in enumerate(self.rows):
            if not self.rng.integers(0, 20):
                out.write(f"#9{self.delimiter}9{self.end}" if self.rng.integers(0, 2) else self.end)
            line = io.StringIO()
            cells = [self.text_of(cell) for cell in row]
            csv.writer(line, delimiter=self.delimiter, lineterminator="", quoting=writer.dialect.quoting).writerow(([f"r{n}"] if self.is_r else []) + cells)
            text = line.getvalue()
            if text.startswith("#"):
                text = f'"{text[: text.index(self.delimiter)]}"{text[text.index(self.delimiter):]}'
            if not self.by_blanks and not self.is_r and not self.rng.integers(0, 10):
                text += self.delimiter * int(self.rng.integers(1, 3))
            out.write(text + self.end)
        return out.getvalue()


@pytest.mark.parametrize("part", range(12))
def test_random_tables(tally, tmp_path, part):
    rng = np.random.default_rng(seed := (a_seed() + part) % 2**32)
    for _ in range(6):
        t = Table(rng)
        path = tmp_path / "t.csv"
        path.write_bytes(t.text().encode())
        sums, places = {}, {}
        for row in t.rows:
            sums.setdefault(row[t.key], Fraction(0))
            if not isinstance(row[t.value], str):
                sums[row[t.key]] += row[t.value][0]
                places[row[t.key]] = max(places.get(row[t.key], 0), row[t.value][1])
        want = [f"{k}\t{shown(v, places.get(k, 0))}" for k, v in sums.items()]
        options = ["--decimal", "--skip-na", "--decimal-mark", t.mark] + (["--thousands", t.thousands] if t.thousands else [])
        by_number = [str(t.value + 1 + t.is_r), str(t.key + 1 + t.is_r), "--header"]
        for value, key, *more in ((t.names[t.value], t.names[t.key]), by_number):
            for threads in (1, 3):
                got = tally("sum", "-c", value, "--by", key, *more, *options, "--threads", threads, path).split("\n")
                assert got == want, (seed, vars(t), options)


@pytest.mark.parametrize("delimiter", [",", "\t", ";", " ", "blank"])
def test_wide_rows_anywhere(tally, tmp_path, delimiter):
    """The first of some rows that are too wide is told with its line and both counts, in whatever piece it is."""
    rng = np.random.default_rng(seed := a_seed())
    d = " " if delimiter == "blank" else delimiter
    for columns in (1, 2, 3, 40):
        if columns == 1 and d == " ":
            continue
        line = d.join(["1"] * columns)
        lines = [d.join(f"c{i}" for i in range(columns))] + [line] * (2_000_000 // (2 * columns) // 4)
        at = sorted(int(v) for v in rng.integers(2, len(lines), 3))
        more = [int(v) for v in rng.integers(1, 4, 3)]
        for i, extra in zip(at, more):
            lines[i] = f"{line}{d}7" + f"{d}8" * (extra - 1)
        quoted = bool(rng.integers(0, 2)) and d != " "
        if quoted:
            lines[at[0]] = '"1"' + lines[at[0]][1:]
        path = tmp_path / "t.csv"
        path.write_text("\n".join(lines) + "\n")
        for threads in (1, 2, 8):
            got = tally.fails("sum", "-c", "c0", "-F", delimiter, "--threads", threads, path)
            assert got.startswith(f"{path}:{at[0] + 1}: the line has {columns + more[0]} fields, but the first line has {columns}; "), (seed, columns)
        for i in at:
            lines[i] = line + (d * 3 if d != " " else "")
        path.write_text("\n".join(lines) + "\n")
        assert tally("sum", "-c", "c0", "-F", delimiter, path) == str(len(lines) - 1), (seed, columns)


def test_a_row_that_no_longer_fits_r(tally, tmp_path):
    """Below the rows that the form was decided from."""
    rows = '"x","v"\n' + '"1",2,5\n' * 100_000
    for last, words in (("1,2\n", "the line has 2 fields, but rows above have 3"), ("1,2,3,4\n", "the line has 4 fields, but the first line has 2")):
        for threads in (1, 4):
            assert tally.fails("sum", "-c", "v", "--threads", threads, stdin=(rows + last).encode()).startswith(
                f"standard input:100002: {words}")


def test_fortran_exponents(tally):
    rng = np.random.default_rng(seed := a_seed())
    words = [f"{m}D{e:+03d}" for m, e in zip(rng.integers(-10**6, 10**6, 500).tolist(), rng.integers(-30, 30, 500).tolist())]
    want = float(sum(Fraction(float(w.replace("D", "e"))) for w in words))
    assert float(tally("sum", stdin="\n".join(words).encode())) == want, seed
    assert tally("sum", stdin=b"0." + b"0" * 600 + b"5D602 25" + b"0" * 600 + b"d-0000000601") == "52.5"
    assert float(tally("sum", "-c", "v", stdin=("v k\n" + "".join(f"{w} 1\n" for w in words)).encode())) == want, seed


def test_rows_between_blanks_that_are_too_long(tally):
    """A row of more than 1 MiB is not read in pieces, as rows of their own."""
    fields = 150_000
    rows = ["".join(f" c{i:06}" for i in range(fields))] + ["".join(f" {100000 + i + r:7}" for i in range(fields)) for r in range(3)]
    line = tally.fails("sum", "-c", "c000000", stdin="\n".join(rows).encode() + b"\n")
    assert line.endswith(": the line is longer than 1048576 bytes; only lines whose fields stand between delimiters (-F) may be")


def test_text_behind_a_closing_quote(tally):
    """It was taken for the beginning of a field of several lines."""
    for text in (b'n,v\n"a""b" c,7\nb,8\n"z",9\n', b'n,v\n"two\nlines" c,7\n"z",9\n', b'n,v,w\n5" x,7,"a" c\n"z",9,1\n', b'v,n\n7,"a" "b"\n8,c\n',
                 b'n,v\n"a""b","7" c\n"z",9\n', b'n,v\n"abc" x,7\n"def" y,8\n"z",9\n', b'n,v\n"a" 1,7\nb,8\n"z",9\nc,10\n', b'v,n\n7,"a"b\n8,c\n'):
        line = tally.fails("sum", "-c", "v", stdin=text)
        assert line == "standard input:2: text stands behind a field's closing quote; a quote within a field is doubled"
    for text in (b'"n" x,v\nb,8\n"z",9\nc,10\n', b'"n""m" x,v\nb,8\n"z",9\n'):
        for column in ("2", "v"):
            assert tally.fails("sum", "-c", column, "--header", stdin=text) == f"standard input:1: {line.partition(': ')[2]}"
    for delimiter in ", ":
        text = f'v{delimiter}n\n7{delimiter}"a""" \n8{delimiter}"two\n lines""" \n9{delimiter}""""'.encode()
        assert tally("sum", "-c", "v", "-F", delimiter, stdin=text) == "24"
    text = b'n,v\n"a""b",7\n5" x,8\n"z",9\n" q" ,10\n"",3\n"two\nlines",4\n'
    assert tally("sum", "-c", "v", stdin=text) == "41"
